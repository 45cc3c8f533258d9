//! What does a method pointer of the VM stand for? The place in a dex file, if the two agree.

use crate::ManagedProcess;
use std::fs;
use std::ops::Range;
use std::rc::Rc;
use varid_process::reader::ForeignMemory;
use varid_process::{DexImage, Image, Mapped};
use varid_tunnel::abi::{Call, NO_INDEX};
use varid_tunnel::method::{MethodId, NamedMethod, resolve_method, resolve_named};

/// What a method pointer of the VM stands for.
#[derive(Debug, Clone)]
pub enum Method {
    /// A method of a dex file.
    Known {
        /// The dex file.
        dex: Rc<DexImage>,
        /// Index in its method_ids.
        index: u32,
        /// Addresses of its instructions; None: it has no bytecode (JNI).
        code: Option<Range<u64>>,
    },
    /// The VM's own: no method of anybody's.
    Runtime,
    /// It could not be read, or contradicts its dex file.
    Unknown,
    /// The process's memory was gone before it could be read.
    Gone,
}

impl Method {
    /// Whether an address is one of its instructions.
    pub fn has_code_at(&self, address: u64) -> bool {
        matches!(self, Method::Known { code: Some(code), .. } if code.contains(&address))
    }
}

/// Whether a process has memory: none that has ended has, even if nobody has waited for it yet.
fn has_memory(pid: u32) -> bool {
    let sizes = fs::read_to_string(format!("/proc/{pid}/statm"));
    sizes.is_ok_and(|sizes| !sizes.starts_with("0 "))
}

impl ManagedProcess {
    /// What a method pointer stands for; read from the process the first time it is seen.
    pub fn method(&mut self, pointer: u64) -> Method {
        if let Some(known) = self.methods.get(&pointer) {
            return known.clone();
        }
        let Some(vm) = &self.vm else {
            return Method::Unknown;
        };
        if self.gone {
            return Method::Gone;
        }
        let memory = ForeignMemory::new(self.pid());
        let found = if vm.has_save_areas() {
            resolve_named(&vm.layout, &memory, pointer).map(|named| self.place_named(&named))
        } else {
            resolve_method(&vm.layout, &memory, pointer)
                .map(|id| id.map_or(Method::Runtime, |id| self.place(&id)))
        };
        let method = match found {
            Ok(method) => method,
            Err(error) => {
                tracing::debug!(pid = self.pid(), pointer, %error, "method not resolved");
                self.gone = !has_memory(self.pid());
                // Not remembered: the collector may have been at work just then.
                return match self.gone {
                    true => Method::Gone,
                    false => Method::Unknown,
                };
            }
        };
        if !matches!(method, Method::Unknown) {
            self.methods.insert(pointer, method.clone());
        }
        method
    }

    /// The method that an entry of the VM's counts is of: by what the VM said of it, else by its pointer.
    pub fn counted_method(&mut self, call: &Call) -> Method {
        /// Bytes of a code_item's header, before its instructions.
        const HEADER: u64 = 16;
        let begin = match self.process.space.at(call.insns) {
            Some(Mapped {
                image: Image::Dex(_),
                start,
                ..
            }) if call.insns != 0 => *start,
            _ => call.dex,
        };
        let code_off = match call.insns {
            0 => Some(0),
            insns => insns
                .checked_sub(begin.saturating_add(HEADER))
                .and_then(|offset| u32::try_from(offset).ok()),
        };
        let placed = code_off
            .filter(|_| begin != 0 && (call.insns != 0 || call.index != NO_INDEX))
            .map(|code_off| MethodId {
                dex_begin: begin,
                // The code says which it is; its first method is as good as any.
                method_index: if call.index == NO_INDEX {
                    0
                } else {
                    call.index
                },
                code_off,
            });
        match placed.map(|id| self.place(&id)) {
            Some(known @ Method::Known { .. }) => known,
            _ => self.method(call.method),
        }
    }

    /// The dex file that starts at an address.
    fn dex_from(&mut self, begin: u64) -> Option<Rc<DexImage>> {
        if !self.process.has_dex_at(begin) {
            return None;
        }
        match self.process.space.at(begin) {
            Some(Mapped {
                image: Image::Dex(dex),
                start,
                pgoff: 0,
                ..
            }) if *start == begin => Some(dex.clone()),
            _ => None,
        }
    }

    /// The place in a mapped dex file of a method that knows no index, if the two agree.
    fn place_named(&mut self, named: &NamedMethod) -> Method {
        let Some(dex) = self.dex_from(named.dex_begin) else {
            return Method::Unknown;
        };
        let within = |address: u64| address.checked_sub(named.dex_begin);
        let code = within(named.insns).and_then(|offset| {
            let offset = u32::try_from(offset).ok()?;
            let method = dex.methods.lookup(offset)?;
            (method.code.start == offset).then_some(method)
        });
        if let Some(method) = code {
            let address = |offset: u32| named.dex_begin.wrapping_add(u64::from(offset));
            return Method::Known {
                index: method.index,
                code: Some(address(method.code.start)..address(method.code.end)),
                dex,
            };
        }
        let offset = |address| usize::try_from(within(address)?).ok();
        let index = offset(named.descriptor)
            .zip(offset(named.name))
            .and_then(|(class, name)| dex.dex.method_named_at(class, name, named.proto));
        index.map_or(Method::Unknown, |index| Method::Known {
            dex,
            index,
            code: None,
        })
    }

    /// The method's place in a mapped dex file, if the two agree.
    pub(crate) fn place(&mut self, id: &MethodId) -> Method {
        let Some(dex) = self.dex_from(id.dex_begin) else {
            return Method::Unknown;
        };
        if id.method_index >= dex.dex.method_count() {
            return Method::Unknown;
        }
        if id.code_off == 0 {
            return Method::Known {
                dex,
                index: id.method_index,
                code: None,
            };
        }
        // A code_item's instructions follow its header of 16 bytes.
        let offset = id.code_off.wrapping_add(16);
        match dex.methods.lookup(offset) {
            Some(method) if method.code.start == offset => {
                let address = |offset: u32| id.dex_begin.wrapping_add(u64::from(offset));
                let code = address(method.code.start)..address(method.code.end);
                Method::Known {
                    dex,
                    index: id.method_index,
                    code: Some(code),
                }
            }
            _ => Method::Unknown,
        }
    }
}
