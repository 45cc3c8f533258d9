//! How is a class rewritten?

use crate::class::{ClassFile, Code, Constants, Method, access, opcode};
use crate::intrinsics::{ANNOTATIONS, Replacement, replacement, without_candidate};
use crate::method;
use crate::request::{Failed, NewCode, Request};
use crate::runtime::CLASS;
use crate::{
    Body, Intrinsics, MethodNumber, MethodReference, MethodTable, NotRewritten, Plain, Plan,
    Rewritten,
};

/// The added bytes that a class of no length may have: much more than the fixed parts of a method.
const LEAST_BUDGET: usize = 1 << 16;
/// How many times longer than its file a class may become, beside that. A hostile class may claim so many local variables that each of its frames
/// would take 65,535 bytes.
const GROWTH: usize = 16;

/// Rewrites a class so that its methods count their calls as the plan says. Its methods get the numbers from `first` on, as many as
/// [`Rewritten::methods`] has entries.
///
/// The code of a method that cannot be rewritten stays as it is; [`Body`] says why.
///
/// # Errors
///
/// [`NotRewritten`] if the class stays as it is altogether. It uses no numbers then.
pub fn rewrite(class: &[u8], plan: &Plan, first: MethodNumber) -> Result<Rewritten, NotRewritten> {
    let mut file = ClassFile::read(class)?;
    if file.name == CLASS.as_bytes() {
        return Err(NotRewritten::Runtime);
    }
    let mut budget = class
        .len()
        .saturating_mul(GROWTH)
        .saturating_add(LEAST_BUDGET);
    let methods = std::mem::take(&mut file.methods);
    let mut written = u16::try_from(methods.len())
        .unwrap_or(u16::MAX)
        .to_be_bytes()
        .to_vec();
    let mut tables = Vec::with_capacity(methods.len());
    for (index, method) in methods.iter().enumerate() {
        let number = first.after(index).ok_or(NotRewritten::NoNumbers)?;
        let start = written.len();
        tables.push(rewrite_method(
            &mut file,
            method,
            plan,
            number,
            budget,
            &mut written,
        )?);
        budget = budget.saturating_sub(written.len().saturating_sub(start));
    }
    let mut bytes = Vec::with_capacity(class.len().saturating_add(written.len()));
    file.write_head(&mut bytes);
    bytes.extend(file.field_count.to_be_bytes());
    bytes.extend(file.fields);
    bytes.extend(written);
    bytes.extend(file.attributes);
    Ok(Rewritten {
        bytes,
        class: crate::class::modified_utf8(file.name),
        source_file: file.source_file,
        methods: tables,
    })
}

/// Rewrites one method and appends it.
fn rewrite_method(
    file: &mut ClassFile<'_>,
    method: &Method<'_>,
    plan: &Plan,
    number: MethodNumber,
    budget: usize,
    to: &mut Vec<u8>,
) -> Result<MethodTable, NotRewritten> {
    let mut table = MethodTable {
        number,
        name: crate::class::modified_utf8(method.name),
        descriptor: crate::class::modified_utf8(method.descriptor),
        access: method.access,
        body: Body::Abstract,
        code_length: 0,
        sites: Vec::new(),
        blocks: Vec::new(),
        counters: 0,
        lines: Vec::new(),
    };
    let Some(attribute) = method.attribute(b"Code") else {
        if method.access & access::NATIVE != 0 {
            table.body = Body::Native;
        }
        write(method, &Changes::default(), to);
        return Ok(table);
    };
    let code = match Code::read(attribute.data, &file.constants) {
        Ok(code) => code,
        Err(_) => {
            table.body = Body::Plain(Plain::Invalid);
            write(method, &Changes::default(), to);
            return Ok(table);
        }
    };
    table.code_length = u16::try_from(code.bytes.len()).unwrap_or(u16::MAX);
    table.lines = method::source_lines(&code);
    let replacement = replacement(file.name, method, &file.constants);
    let leaf = match replacement {
        Replacement::None => false,
        Replacement::ByCompilers => plan.intrinsics == Intrinsics::Leaves,
        Replacement::ByVm => true,
    };
    let annotations = match method.attribute(ANNOTATIONS) {
        Some(it) if !leaf && replacement == Replacement::ByCompilers => {
            without_candidate(it.data, &file.constants)
        }
        _ => None,
    };
    let request = Request {
        number,
        counted: (!leaf).then_some(plan.counted),
        starts: plan
            .start
            .as_ref()
            .is_some_and(|start| names(start, file, &table)),
        is_extent: plan.within.as_ref().is_some_and(|within| {
            let class = crate::class::modified_utf8(file.name);
            within.matches(&class, &table.name, &table.descriptor)
        }),
        has_frames: file.major >= 50,
        budget,
        access: method.access,
        name: method.name,
        descriptor: method.descriptor,
        class: file.name,
    };
    let new_code = new_code(&code, &request, &mut file.constants);
    match new_code {
        Ok(new_code) => {
            table.body = if leaf { Body::Leaf } else { Body::Counted };
            let changes = Changes {
                code: new_code.as_ref().map(|code| code.attribute.as_slice()),
                annotations: annotations.as_deref(),
            };
            write(method, &changes, to);
            if let Some(new_code) = new_code {
                table.counters = crate::blocks::counters(&new_code.blocks);
                table.sites = new_code.sites;
                table.blocks = new_code.blocks;
            }
        }
        Err(Failed::Method(plain)) => {
            table.body = Body::Plain(plain);
            write(method, &Changes::default(), to);
        }
        Err(Failed::Class(error)) => return Err(error),
    }
    Ok(table)
}

/// Returns a method's new code. None: it is a leaf that calls nothing, and needs none.
fn new_code(
    code: &Code<'_>,
    request: &Request<'_>,
    constants: &mut Constants<'_>,
) -> Result<Option<NewCode>, Failed> {
    if (request.class, request.name) == (b"java/lang/Object", b"<init>") {
        return Err(Failed::Method(Plain::ObjectConstructor));
    }
    if (request.name, request.descriptor) == (b"finalize", b"()V") && code.bytes == [opcode::RETURN]
    {
        return Err(Failed::Method(Plain::EmptyFinalizer));
    }
    if request.counted.is_none() && !method::calls(code)? {
        return Ok(None);
    }
    method::rewrite(code, request, constants).map(Some)
}

fn names(start: &MethodReference, file: &ClassFile<'_>, table: &MethodTable) -> bool {
    start.class.as_bytes() == file.name
        && start.name == table.name
        && start.descriptor == table.descriptor
}

/// The new contents of a method's attributes. None: they stay.
#[derive(Debug, Clone, Copy, Default)]
struct Changes<'m> {
    code: Option<&'m [u8]>,
    annotations: Option<&'m [u8]>,
}

/// Appends a method, with its changes.
fn write(method: &Method<'_>, changes: &Changes<'_>, to: &mut Vec<u8>) {
    to.extend(method.access.to_be_bytes());
    to.extend(method.name_index.to_be_bytes());
    to.extend(method.descriptor_index.to_be_bytes());
    to.extend(
        u16::try_from(method.attributes.len())
            .unwrap_or(u16::MAX)
            .to_be_bytes(),
    );
    for attribute in &method.attributes {
        let changed = match attribute.name {
            b"Code" => changes.code,
            ANNOTATIONS => changes.annotations,
            _ => None,
        };
        let data = changed.unwrap_or(attribute.data.rest());
        to.extend(attribute.name_index.to_be_bytes());
        to.extend(u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
        to.extend(data);
    }
}
