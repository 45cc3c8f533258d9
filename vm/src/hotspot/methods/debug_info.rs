//! What does a code address of a compiled method execute?

use super::error::{MethodError, Result};
use super::frames::{Bci, CompiledScope, CompiledScopes, MethodPointer, Precision};
use super::numbers::Numbers;
use super::structure::Structure;
use crate::hotspot::layout::PcDescLayout;
use crate::hotspot::unexported::Unsigned5;
use std::collections::BTreeSet;
use varid_model::{Address, FrameAddress};

/// The most methods at a code address, those that are inlined into each other.
const MAX_DEPTH: usize = 512;
/// `DebugInformationRecorder::serialized_null`: no scope.
const NO_SCOPE: u32 = 0;
/// What is added to a bytecode index in the stream: `-InvocationEntryBci`.
const BCI_BIAS: u32 = 1;

/// The debug information of a compiled method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebugInfo {
    /// By address.
    pub(super) pc_descs: Box<[PcDesc]>,
    /// The encoded scopes.
    pub(super) scopes: Box<[u8]>,
    /// What scopes refer to, methods among them.
    pub(super) metadata: Box<[Address]>,
    pub(super) encoding: Unsigned5,
}

/// The debug information of a code address, `PcDesc`: that of a return address, or of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PcDesc {
    /// Bytes from the method's first instruction.
    pub(super) pc_offset: u32,
    /// Where its scope is in the encoded scopes. [`NO_SCOPE`] at the end of the array.
    pub(super) scope: u32,
}

/// A scope, `ScopeDesc` (code/scopeDesc.cpp): a method, and where it is. Locals, expressions and monitors are not read.
struct Scope {
    /// Where the scope is into which it is inlined. [`NO_SCOPE`] if it is the compiled method.
    sender: u32,
    /// Its index in the metadata, from 1 on. 0 is none.
    method: u32,
    bci: Option<Bci>,
}

impl DebugInfo {
    /// Reads the descriptions of code addresses from a copy of the array. The first one is a sentinel.
    pub(super) fn pc_descs(array: &Structure, layout: &PcDescLayout) -> Result<Box<[PcDesc]>> {
        let size = (layout.size as usize).max(1);
        let mut found = Vec::with_capacity(array.bytes.len().checked_div(size).unwrap_or(0));
        for bytes in array.bytes.chunks_exact(size) {
            let desc = array.part(bytes);
            let scope = desc.number(layout.scope)?;
            if let (Ok(pc_offset), Ok(scope)) = (
                u32::try_from(desc.signed(layout.pc_offset)?),
                u32::try_from(scope),
            ) {
                found.push(PcDesc { pc_offset, scope });
            }
        }
        Ok(found.into())
    }

    /// Returns what an address executes. `code`: the method's first instruction. `method`: what was compiled.
    pub(super) fn scopes_at(
        &self,
        address: FrameAddress,
        code: Address,
        method: MethodPointer,
    ) -> Result<CompiledScopes> {
        let offset = address.recorded().offset_from(code);
        let found = offset.and_then(|offset| self.pc_desc(address, offset));
        let Some((desc, precision)) = found else {
            let scopes = vec![CompiledScope { method, bci: None }];
            let precision = Precision::MethodOnly;
            return Ok(CompiledScopes { precision, scopes });
        };
        let scopes = self.scopes_from(desc.scope)?;
        Ok(CompiledScopes { precision, scopes })
    }

    /// Returns the debug information of an address, `offset` behind the first instruction. None if there is none from there on.
    ///
    /// Debug information of a return address holds for the instructions in front of it, as in `nmethod::pc_desc_at` and
    /// `nmethod::pc_desc_near`. That of an instruction is the nearest: a load that may fault has debug information at its own address, and it
    /// is the instruction behind it that waits for it.
    fn pc_desc(&self, address: FrameAddress, offset: u64) -> Option<(PcDesc, Precision)> {
        let distance = |desc: &PcDesc| u64::from(desc.pc_offset).abs_diff(offset);
        let after = self
            .pc_descs
            .partition_point(|desc| u64::from(desc.pc_offset) < offset);
        let following = self.pc_descs.get(after);
        let (desc, precision) = match address {
            FrameAddress::Return(_) => match following? {
                exact if distance(exact) == 0 => (exact, Precision::Exact),
                following => (following, Precision::Following),
            },
            FrameAddress::Instruction(_) => {
                let before = after.checked_sub(1).and_then(|at| self.pc_descs.get(at));
                let has_scope = |desc: &&PcDesc| desc.scope != NO_SCOPE;
                let near = [before, following].into_iter().flatten().filter(has_scope);
                (
                    near.min_by_key(|desc| distance(desc))?,
                    Precision::Approximate,
                )
            }
        };
        (desc.scope != NO_SCOPE).then_some((*desc, precision))
    }

    /// Returns the methods of a scope and of those into which it is inlined, innermost first.
    fn scopes_from(&self, scope: u32) -> Result<Vec<CompiledScope>> {
        let mut found = Vec::new();
        let mut at = scope;
        while at != NO_SCOPE {
            let scope = self.decode(at)?;
            found.push(CompiledScope {
                method: self.method(scope.method)?,
                bci: scope.bci,
            });
            if found.len() > MAX_DEPTH {
                let why = "no compiler inlines as many methods into each other";
                return Err(MethodError::implausible(SCOPE, at.into(), why));
            }
            at = scope.sender;
        }
        Ok(found)
    }

    /// Returns the methods of all scopes. Those that are wrong are left out.
    pub(super) fn methods(&self) -> BTreeSet<MethodPointer> {
        let mut methods = BTreeSet::new();
        let mut seen = BTreeSet::from([NO_SCOPE]);
        for desc in &self.pc_descs {
            let mut at = desc.scope;
            while seen.insert(at)
                && let Ok(scope) = self.decode(at)
            {
                methods.extend(self.method(scope.method));
                at = scope.sender;
            }
        }
        methods
    }

    /// Decodes the scope at an offset.
    fn decode(&self, at: u32) -> Result<Scope> {
        let bytes = usize::try_from(at)
            .ok()
            .and_then(|at| self.scopes.get(at..));
        let mut numbers = Numbers::new(bytes.unwrap_or_default(), self.encoding);
        let mut next = || {
            let why = "there is no scope";
            numbers
                .unsigned()
                .ok_or(MethodError::implausible(SCOPE, at.into(), why))
        };
        let (sender, method, bci) = (next()?, next()?, next()?);
        // The compiler describes a method before those that are inlined into it.
        if sender >= at {
            let why = "it is inlined into one that is described later";
            return Err(MethodError::implausible(SCOPE, at.into(), why));
        }
        let bci = bci.wrapping_sub(BCI_BIAS);
        let bci = u16::try_from(bci).ok().map(Bci::new);
        Ok(Scope {
            sender,
            method,
            bci,
        })
    }

    /// Returns the method with an index in the metadata, from 1 on.
    fn method(&self, index: u32) -> Result<MethodPointer> {
        let place = usize::try_from(index).ok().and_then(|it| it.checked_sub(1));
        let method = place.and_then(|place| self.metadata.get(place));
        match method {
            Some(method) if method.get() != 0 => Ok(MethodPointer(*method)),
            _ => {
                let why = "no method is there";
                Err(MethodError::implausible(
                    "a scope's method",
                    index.into(),
                    why,
                ))
            }
        }
    }

    /// Its size in bytes.
    pub(super) fn size(&self) -> usize {
        size_of_val(&*self.pc_descs)
            .saturating_add(self.scopes.len())
            .saturating_add(size_of_val(&*self.metadata))
    }
}

const SCOPE: &str = "the offset of a scope";

#[cfg(test)]
mod tests {
    use super::super::numbers::tests::encode;
    use super::*;

    const CODE: Address = Address::new(0x4000);
    const OUTER: MethodPointer = MethodPointer(Address::new(0x100));
    const INNER: MethodPointer = MethodPointer(Address::new(0x200));

    /// Two scopes, one inlined into the other, and pcs at 16, 40 and 80. `encoding` of what is written and read.
    fn info(encoding: Unsigned5) -> DebugInfo {
        let mut scopes = vec![0xff];
        let mut add = |numbers: [u32; 6]| {
            let at = scopes.len() as u32;
            scopes.extend(numbers.iter().flat_map(|number| encode(*number, encoding)));
            at
        };
        let outer = add([0, 1, 300 + BCI_BIAS, 0, 0, 0]);
        let inner = add([outer, 3, 5 + BCI_BIAS, 0, 0, 0]);
        let entry = add([outer, 3, 0, 0, 0, 0]);
        let pc_descs = [(16, inner), (40, outer), (80, entry), (i32::MAX as u32, 0)];
        DebugInfo {
            pc_descs: pc_descs
                .map(|(pc_offset, scope)| PcDesc { pc_offset, scope })
                .into(),
            scopes: scopes.into(),
            metadata: [OUTER.0, Address::new(0), INNER.0].into(),
            encoding,
        }
    }

    fn at(info: &DebugInfo, address: FrameAddress) -> (Precision, Vec<CompiledScope>) {
        let found = info.scopes_at(address, CODE, OUTER).unwrap();
        (found.precision, found.scopes)
    }

    const fn scope(method: MethodPointer, bci: Option<u16>) -> CompiledScope {
        let bci = match bci {
            Some(bci) => Some(Bci::new(bci)),
            None => None,
        };
        CompiledScope { method, bci }
    }

    fn returns(offset: u64) -> FrameAddress {
        FrameAddress::Return(CODE.wrapping_add(offset))
    }

    #[test]
    fn inlined_methods_are_those_of_the_return_address() {
        let inlined = vec![scope(INNER, Some(5)), scope(OUTER, Some(300))];
        for encoding in [Unsigned5::WithZero, Unsigned5::WithoutZero] {
            let info = info(encoding);
            assert_eq!(at(&info, returns(16)), (Precision::Exact, inlined.clone()));
            let alone = vec![scope(OUTER, Some(300))];
            assert_eq!(at(&info, returns(40)), (Precision::Exact, alone));
            let entered = vec![scope(INNER, None), scope(OUTER, Some(300))];
            assert_eq!(at(&info, returns(80)), (Precision::Exact, entered));
            assert_eq!(info.methods(), BTreeSet::from([OUTER, INNER]));
        }
    }

    #[test]
    fn what_follows_holds_where_there_is_nothing_exact() {
        let info = info(Unsigned5::WithZero);
        let precision = |address| at(&info, address).0;
        assert_eq!(at(&info, returns(17)).1, at(&info, returns(40)).1);
        assert_eq!(precision(returns(17)), Precision::Following);
        let leaf = |offset| FrameAddress::Instruction(CODE.wrapping_add(offset));
        for offset in [0, 15, 16] {
            assert_eq!(at(&info, leaf(offset)).1.len(), 2);
            assert_eq!(precision(leaf(offset)), Precision::Approximate);
        }
        assert_eq!(at(&info, leaf(17)).1.len(), 1);
        // Behind the last one, and in front of the code.
        let only = (Precision::MethodOnly, vec![scope(OUTER, None)]);
        assert_eq!(at(&info, leaf(81)), only);
        assert_eq!(at(&info, FrameAddress::Instruction(Address::new(1))), only);
    }

    #[test]
    fn scopes_that_lie_are_errors() {
        let refused = |scopes: &[u32], metadata: &[u64]| {
            let bytes = scopes
                .iter()
                .map(|number| encode(*number, Unsigned5::WithZero));
            let info = DebugInfo {
                pc_descs: [PcDesc {
                    pc_offset: 0,
                    scope: 1,
                }]
                .into(),
                scopes: [vec![0]].into_iter().chain(bytes).flatten().collect(),
                metadata: metadata.iter().copied().map(Address::new).collect(),
                encoding: Unsigned5::WithZero,
            };
            assert!(info.methods().len() <= 1);
            let found = info.scopes_at(returns(0), CODE, OUTER);
            found.unwrap_err().to_string()
        };
        // Its own sender, and one behind it.
        for sender in [1, 7, u32::MAX] {
            let why = refused(&[sender, 1, 1], &[8]);
            assert!(
                why.ends_with("it is inlined into one that is described later"),
                "{why}"
            );
        }
        for method in [0, 2, u32::MAX] {
            let why = refused(&[0, method, 1], &[8]);
            assert!(why.ends_with("no method is there"), "{why}");
        }
        assert!(refused(&[0, 1, 1], &[0]).ends_with("no method is there"));
        assert!(refused(&[0, 1], &[8]).ends_with("there is no scope"));
        assert!(refused(&[], &[8]).ends_with("there is no scope"));
    }

    #[test]
    fn a_long_chain_of_scopes_ends() {
        let encoding = Unsigned5::WithZero;
        let mut scopes = vec![0];
        let mut last = 0;
        for _ in 0..1000 {
            let at = scopes.len() as u32;
            for number in [last, 1, 1] {
                scopes.extend(encode(number, encoding));
            }
            last = at;
        }
        let info = DebugInfo {
            pc_descs: [PcDesc {
                pc_offset: 0,
                scope: last,
            }]
            .into(),
            scopes: scopes.into(),
            metadata: [Address::new(8)].into(),
            encoding,
        };
        let why = info.scopes_at(returns(0), CODE, OUTER).unwrap_err();
        assert!(why.to_string().contains("no compiler inlines"), "{why}");
    }
}
