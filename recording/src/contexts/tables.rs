//! The encoding of methods and call sites in contexts.data.

use varid_model::{Address, CodeUnits};

use super::{
    ids::MethodId,
    parts::{ContextSite, SiteTarget},
};
use crate::chunks::{Payload, put_difference, put_number, put_text};

varid_model::index_types! {
    /// The index of a process.
    ProcessIndex;
}

/// A method: process and address (as differences to the previous method of the chunk), then 1 plus the length of the
/// code, or 0.
#[derive(Debug, Clone, Copy)]
pub struct MethodRecord {
    pub process: ProcessIndex,
    pub address: Address,
    pub code: Option<CodeUnits>,
}

/// The last method of a chunk. The next one is encoded as a difference to it.
#[derive(Debug, Default)]
pub struct LastMethod {
    /// The index of its process.
    process: u32,
    address: Address,
}

impl LastMethod {
    pub fn encode(&mut self, out: &mut Vec<u8>, method: &MethodRecord) {
        put_difference(out, u64::from(self.process), u64::from(method.process.0));
        put_difference(out, self.address.get(), method.address.get());
        let code = method.code.map(CodeUnits::get);
        put_number(
            out,
            code.map_or(0, |units| u64::from(units).saturating_add(1)),
        );
        *self = Self {
            process: method.process.0,
            address: method.address,
        };
    }

    pub fn decode(&mut self, payload: &mut Payload<'_>) -> Result<MethodRecord, &'static str> {
        let process = ProcessIndex(payload.small_difference(self.process)?);
        let address = Address::new(payload.difference(self.address.get())?);
        let code = match payload.number()?.checked_sub(1) {
            Some(units) => {
                let units = u32::try_from(units).map_err(|_| "a method of more than 2^32 units")?;
                Some(CodeUnits::new(units))
            }
            None => None,
        };
        *self = Self {
            process: process.0,
            address,
        };
        Ok(MethodRecord {
            process,
            address,
            code,
        })
    }
}

/// The method of the last site of a chunk. That of the next site is encoded as a difference to it.
///
/// A site consists of the method (difference), offset, opcode (a byte), kind of the target (a byte), and a name or a
/// method.
#[derive(Debug, Default)]
pub struct LastSite {
    method: u32,
}

/// The kinds of a site's target.
mod target {
    pub const NONE: u8 = 0;
    pub const NAME: u8 = 1;
    pub const METHOD: u8 = 2;
}

impl LastSite {
    pub fn encode(&mut self, out: &mut Vec<u8>, site: &ContextSite) {
        put_difference(out, u64::from(self.method), u64::from(site.method.0));
        put_number(out, u64::from(site.pc.get()));
        out.push(site.opcode);
        match &site.target {
            None => out.push(target::NONE),
            Some(SiteTarget::Name(name)) => {
                out.push(target::NAME);
                put_text(out, name);
            }
            Some(SiteTarget::Method(method)) => {
                out.push(target::METHOD);
                put_number(out, u64::from(method.0));
            }
        }
        self.method = site.method.0;
    }

    pub fn decode(&mut self, payload: &mut Payload<'_>) -> Result<ContextSite, &'static str> {
        self.method = payload.small_difference(self.method)?;
        Ok(ContextSite {
            method: MethodId(self.method),
            pc: CodeUnits::new(payload.small()?),
            opcode: payload.byte()?,
            target: match payload.byte()? {
                target::NONE => None,
                target::NAME => Some(SiteTarget::Name(payload.text()?.to_owned())),
                target::METHOD => Some(SiteTarget::Method(MethodId(payload.small()?))),
                _ => return Err("a call site whose target is of an unknown kind"),
            },
        })
    }
}
