//! Rewrites a dex file.

use std::collections::HashMap;

use varid_instrument::{Body, MethodNumber, MethodReference, MethodTable};

use crate::code::{self, MethodCode, NewCode, Shorty};
use crate::error::{NotRewritten, Result, invalid};
use crate::file::{
    ClassData, ClassDef, Header, MemberMethod, MembersLeft, MethodId, NO_INDEX, Order, Pools,
};
use crate::plan::Plan;
use crate::runtime::{Runtime, RuntimeMembers};

/// Access flags.
pub(crate) mod access {
    pub(crate) const PUBLIC: u32 = 0x1;
    pub(crate) const STATIC: u32 = 0x8;
    pub(crate) const FINAL: u32 = 0x10;
    pub(crate) const NATIVE: u32 = 0x100;
}

/// How much larger a file may become, for each byte and in addition.
const GROWTH: usize = 16;
const ROOM: usize = 1 << 20;

/// Whether a file has the class that the rewritten code calls, or another file of the program has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeClass {
    /// It is added to this file.
    Added,
    /// Another file has it.
    Elsewhere,
}

/// A dex file that was rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewritten {
    /// The new file.
    pub bytes: Vec<u8>,
    /// Its classes, in the order of the file.
    pub classes: Vec<RewrittenClass>,
    /// The methods that are called and whose classes are not in the file. Each is [`Body::Leaf`].
    pub others: Vec<RewrittenClass>,
}

/// What is counted of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewrittenClass {
    /// Its name with slashes, such as `org/example/App`.
    pub name: String,
    /// Its source file, if the dex file says it.
    pub source_file: Option<String>,
    /// Its methods. The numbers follow each other from the first one that was given. Places in code are code units.
    pub methods: Vec<MethodTable>,
    /// The first code units of the instructions of each method of [`methods`](Self::methods) whose blocks are counted.
    pub instructions: Vec<(MethodNumber, Vec<u16>)>,
}

/// Rewrites a dex file so that it counts each call by its calling context. `first` is the number of its first method.
///
/// # Errors
///
/// The file is invalid, or has something that the rewriter does not support.
pub fn rewrite(
    dex: &[u8],
    plan: Plan,
    first: MethodNumber,
    runtime_class: RuntimeClass,
) -> Result<Rewritten> {
    let header = Header::read(dex)?;
    let mut pools = Pools::read(&header)?;
    let classes = ClassDef::read_all(&header)?;
    let runtime = Runtime::add(&mut pools)?;
    let order = pools.sort()?;
    let file = File {
        header,
        members: runtime.members(&order)?,
        pools,
        order,
        runtime,
        limit: dex.len().saturating_mul(GROWTH).saturating_add(ROOM),
    };
    let mut next = Some(first);
    let classes = file.rewrite_classes(&classes, plan, &mut next)?;
    let others = file.other_methods(&classes, &mut next)?;
    let bytes = file.write(&classes, runtime_class)?;
    Ok(Rewritten {
        bytes,
        classes: classes.into_iter().map(|class| class.table).collect(),
        others,
    })
}

/// A file, and the order of its new tables.
pub(crate) struct File<'d> {
    pub(crate) header: Header<'d>,
    pub(crate) pools: Pools<'d>,
    pub(crate) order: Order,
    pub(crate) runtime: Runtime,
    /// The members of the runtime class.
    pub(crate) members: RuntimeMembers,
    /// The most bytes that the new file may have.
    pub(crate) limit: usize,
}

/// A class with its new code.
pub(crate) struct NewClass {
    pub(crate) def: ClassDef,
    pub(crate) members: ClassData,
    /// The code of the members that have some, in their order.
    pub(crate) code: Vec<NewCode>,
    pub(crate) table: RewrittenClass,
}

impl File<'_> {
    fn rewrite_classes(
        &self,
        defs: &[ClassDef],
        plan: Plan,
        next: &mut Option<MethodNumber>,
    ) -> Result<Vec<NewClass>> {
        let data = self.header.data;
        let mut classes = Vec::new();
        // Members and code that classes share are counted for each of them.
        let mut taken = 0_usize;
        let mut left = MembersLeft::of(&self.header);
        for def in defs {
            let members = ClassData::read(data, def.data)?;
            left.take(&members, def.data)?;
            let table = RewrittenClass {
                name: class_name(&self.pools.descriptor(def.class)),
                source_file: (def.source_file != NO_INDEX)
                    .then(|| self.pools.string(def.source_file)),
                methods: Vec::new(),
                instructions: Vec::new(),
            };
            let mut class = NewClass {
                def: *def,
                members: ClassData::default(),
                code: Vec::new(),
                table,
            };
            for member in members.methods.iter().flatten() {
                let number = next.ok_or(NotRewritten::NoNumbers)?;
                *next = number.after(1);
                taken = class.add(self, member, number, plan)?.saturating_add(taken);
                if taken > self.limit {
                    return Err(NotRewritten::Unsupported("items that share their parts"));
                }
            }
            class.members = members;
            classes.push(class);
        }
        Ok(classes)
    }

    /// Returns the methods that are called and are not in the file, by their classes.
    fn other_methods(
        &self,
        classes: &[NewClass],
        next: &mut Option<MethodNumber>,
    ) -> Result<Vec<RewrittenClass>> {
        let own = classes.iter().map(|class| class.def.class);
        let own: std::collections::HashSet<u32> = own.chain([self.runtime.class]).collect();
        let mut others: Vec<RewrittenClass> = Vec::new();
        let mut known: HashMap<u32, usize> = HashMap::new();
        // Those that were added are behind them.
        let called = self.pools.methods();
        for (_, method) in called.take(self.header.methods.count as usize) {
            if own.contains(&method.class) {
                continue;
            }
            let at = *known.entry(method.class).or_insert_with(|| {
                others.push(RewrittenClass {
                    name: class_name(&self.pools.descriptor(method.class)),
                    source_file: None,
                    methods: Vec::new(),
                    instructions: Vec::new(),
                });
                others.len().saturating_sub(1)
            });
            let number = next.ok_or(NotRewritten::NoNumbers)?;
            *next = number.after(1);
            if let Some(class) = others.get_mut(at) {
                let table = self.table(method, number, 0, Body::Leaf);
                class.methods.push(table);
            }
        }
        Ok(others)
    }

    /// Returns the table of a method without code.
    fn table(
        &self,
        method: MethodId,
        number: MethodNumber,
        access: u32,
        body: Body,
    ) -> MethodTable {
        let [low, high, ..] = access.to_le_bytes();
        MethodTable {
            number,
            name: self.pools.string(method.name),
            descriptor: self.pools.prototype(method.proto),
            access: u16::from_le_bytes([low, high]),
            body,
            code_length: 0,
            sites: Vec::new(),
            blocks: Vec::new(),
            counters: 0,
            lines: Vec::new(),
        }
    }

    /// Names the method that an instruction calls.
    fn reference(&self, index: Option<u32>, is_method: bool) -> MethodReference {
        let method = index.filter(|_| is_method);
        let method = method.and_then(|index| self.pools.method(index));
        method.map_or_else(
            || MethodReference {
                class: String::new(),
                name: "invoke-custom".to_owned(),
                descriptor: String::new(),
            },
            |method| MethodReference {
                class: class_name(&self.pools.descriptor(method.class)),
                name: self.pools.string(method.name),
                descriptor: self.pools.prototype(method.proto),
            },
        )
    }

    /// Returns the types of the arguments of a method.
    fn arguments(&self, method: MethodId, access: u32) -> Shorty {
        let proto = self.pools.proto(method.proto);
        let parameters = proto.into_iter().flat_map(|proto| &proto.parameters);
        let types = parameters.map(|index| {
            let descriptor = self.pools.descriptor(*index);
            match descriptor.as_bytes().first() {
                Some(b'[') | None => b'L',
                Some(letter) => *letter,
            }
        });
        let is_static = access & access::STATIC != 0;
        let instance = (!is_static).then_some(b'L');
        instance.into_iter().chain(types).collect()
    }
}

impl NewClass {
    /// Adds a method. Returns how many bytes it takes.
    fn add(
        &mut self,
        file: &File<'_>,
        member: &MemberMethod,
        number: MethodNumber,
        plan: Plan,
    ) -> Result<usize> {
        let method = file.pools.method(member.index).ok_or_else(|| {
            invalid(
                "class_data_item",
                self.def.data as usize,
                "a method lies beyond the end of the table",
            )
        })?;
        let body = match member.access & access::NATIVE {
            0 => Body::Abstract,
            _ => Body::Native,
        };
        let mut table = file.table(method, number, member.access, body);
        let mut bytes = 64;
        if member.code != 0 {
            let arguments = file.arguments(method, member.access);
            let request = MethodCode {
                data: file.header.data,
                offset: member.code,
                order: &file.order,
                runtime: &file.members,
                plan,
                number: number.get(),
                arguments: &arguments,
            };
            let mut new = code::rewrite(request, |instruction| {
                // All calls but invoke-custom name a method.
                file.reference(
                    instruction.index(),
                    !matches!(instruction.code, 0xfc | 0xfd),
                )
            })?;
            table.body = new.body.unwrap_or(Body::Abstract);
            table.code_length = new.length;
            table.sites = std::mem::take(&mut new.sites);
            table.blocks = std::mem::take(&mut new.blocks);
            table.counters = new.counters;
            table.lines = std::mem::take(&mut new.lines);
            if !new.instructions.is_empty() {
                let instructions = std::mem::take(&mut new.instructions);
                self.table.instructions.push((number, instructions));
            }
            bytes = new.item.len().saturating_add(new.debug_info.len());
            self.code.push(new);
        }
        self.table.methods.push(table);
        Ok(bytes)
    }
}

/// Returns the name of a class by its descriptor: `Lorg/example/App;` is `org/example/App`.
fn class_name(descriptor: &str) -> String {
    let inner = descriptor
        .strip_prefix('L')
        .and_then(|rest| rest.strip_suffix(';'));
    inner.unwrap_or(descriptor).to_owned()
}
