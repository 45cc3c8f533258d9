//! The fixture is of ART's compiler: tests/fixtures/art11/make.sh. Its code is as if it were mapped.

use super::*;
use crate::art::code_format::CodeFormat;
use crate::art::code_info::InlinedDexFile;
use crate::art::compiled::method::{DexMethod, InfoBytes};
use crate::art::oat_file::OatFile;
use crate::{ManagedProcess, VmKinds};
use std::path::Path;
use varid_model::Pid;
use varid_process::{CodeImage, MappingId, ProcessImage, ProcessMapping};
use varid_symbolizer::dex::DexFile;

const OAT: &[u8] = include_bytes!("../../../../tests/fixtures/art11/code.oat");
const DEX: &[u8] = include_bytes!("../../../../tests/fixtures/art11/code.dex");

/// Where code of `catching` is, and the return address of its first call.
const CATCHING: u32 = 0x1020;
const CALL: u32 = 0x34;
/// Where `first` and `second` have their code in common.
const SHARED: u32 = 0x12e0;
/// Where the process has all this.
const BASE: u64 = 0x7000_0000;
const DEX_AT: u64 = 0x7100_0000;
const SP: u64 = 0x7fff_0000;
/// Nothing is known of a method here, unless a test says so.
const POINTER: u64 = 0x1234_5678;

/// A process with the dex file, in which no VM is found.
fn process() -> (ManagedProcess, Rc<CodeImage>) {
    let image = CodeImage::of_dex(DEX.to_vec(), Path::new("/test/code.dex"));
    let image = Rc::new(image.unwrap());
    let mut process = ManagedProcess::new(Pid::new(std::process::id()), VmKinds::default());
    process.process().space.insert(ProcessMapping {
        start: DEX_AT,
        end: DEX_AT + 0x1000,
        pgoff: 0,
        image: ProcessImage::Code(image.clone()),
        mode: None,
        id: MappingId::default(),
    });
    (process, image)
}

/// Code of the fixture, as that of `owner` or of those that the oat file tells.
fn code(start: u32, image: &Rc<CodeImage>, owner: Option<Owner>) -> CompiledMethod {
    let oat = OatFile::parse(OAT).unwrap();
    let dex = DexFile::parse(DEX).unwrap();
    let methods = oat.compiled_methods(|_| Some(dex.class_methods()));
    let (found, sharing) = methods.at(start).unwrap();
    let sharing = sharing.iter().map(|method| DexMethod {
        image: image.clone(),
        index: method.index,
    });
    let owner = owner.unwrap_or_else(|| Owner::Dex(sharing.collect()));
    let bytes = &OAT[start as usize..][..found.size as usize];
    let info = InfoBytes::Oat {
        format: CodeFormat::Android11,
        bytes: OAT.into(),
        offset: found.code_info,
        dex_files: Rc::default(),
    };
    CompiledMethod::new(BASE + u64::from(start), bytes, owner, info).unwrap()
}

/// What a frame of the code is that has called, with a pointer at its stack pointer.
fn called(
    code: &CompiledMethod,
    return_address: u32,
    at_sp: Option<u64>,
    process: &mut ManagedProcess,
) -> Result<Vec<FramePc>, Reason> {
    let address = Address::new(code.code.start + u64::from(return_address));
    let returns = FrameAddress::Return(address);
    let methods = frames_of(code, at_sp, Address::new(SP), returns, process)?;
    Ok(methods.frames.iter().map(ManagedFrame::pc).collect())
}

/// How well the instruction of a frame of the code is known.
fn precision(
    code: &CompiledMethod,
    at: fn(Address) -> FrameAddress,
    offset: u32,
    process: &mut ManagedProcess,
) -> Precision {
    let address = at(Address::new(code.code.start + u64::from(offset)));
    let methods = frames_of(code, Some(POINTER), Address::new(SP), address, process);
    methods.unwrap().precision
}

/// A method that has no bytecode.
fn native_method(image: &Rc<CodeImage>) -> Method {
    Method::Known {
        image: image.clone(),
        index: 0,
        code: None,
    }
}

/// The address of an instruction of the only method of some code.
fn bytecode(code: &CompiledMethod, dex_pc: u32) -> FramePc {
    let Owner::Dex(methods) = &code.owner else {
        panic!("{:?}", code.owner);
    };
    let mut definitions = methods[0].image.bytecode.definitions();
    let method = definitions.find(|method| method.index == methods[0].index);
    let start = DEX_AT + u64::from(method.unwrap().code.start);
    FramePc::Absolute(Address::new(start + u64::from(2 * dex_pc)))
}

#[test]
fn code_of_one_method_tells_it_without_the_process() {
    let (mut process, image) = process();
    let code = code(CATCHING, &image, None);
    for at_sp in [None, Some(POINTER)] {
        let frames = called(&code, CALL, at_sp, &mut process);
        assert_eq!(frames, Ok(vec![bytecode(&code, 0)]), "{at_sp:?}");
    }
}

#[test]
fn a_call_without_a_stack_map_has_the_bytecode_of_the_one_before() {
    let (mut process, image) = process();
    let code = code(CATCHING, &image, None);
    assert_eq!(
        code.call(Address::new(code.code.start + u64::from(CALL + 1))),
        None
    );
    let frames = called(&code, CALL + 1, None, &mut process);
    assert_eq!(frames, Ok(vec![bytecode(&code, 0)]));
    // Before the first one it is the beginning.
    assert_eq!(called(&code, 1, None, &mut process), frames);
}

#[test]
fn only_the_instruction_of_a_call_with_a_stack_map_is_exact() {
    let (mut process, image) = process();
    let bytecode = code(CATCHING, &image, None);
    let mut of = |code, at, offset| precision(code, at, offset, &mut process);
    assert_eq!(of(&bytecode, FrameAddress::Return, CALL), Precision::Exact);
    for (at, offset) in [
        (FrameAddress::Return as fn(_) -> _, CALL + 1),
        (FrameAddress::Instruction, CALL),
        (FrameAddress::Instruction, 0),
    ] {
        let found = of(&bytecode, at, offset);
        assert_eq!(found, Precision::Approximate, "{offset:#x}");
    }
    // A native method has no instructions.
    let stub = code(CATCHING, &image, Some(Owner::Stub));
    process.insert(POINTER, native_method(&image));
    let mut of = |code, at, offset| precision(code, at, offset, &mut process);
    let found = of(&stub, FrameAddress::Instruction, CALL);
    assert_eq!(found, Precision::Exact);
}

#[test]
fn of_methods_that_share_code_the_frame_tells_which() {
    let (mut process, image) = process();
    let shared = code(SHARED, &image, None);
    assert_eq!(
        called(&shared, 1, None, &mut process),
        Err(Reason::UnknownCompiledCode)
    );
    let stub = code(CATCHING, &image, Some(Owner::Stub));
    assert_eq!(
        called(&stub, CALL, None, &mut process),
        Err(Reason::UnknownCompiledCode)
    );
    process.insert(POINTER, native_method(&image));
    let method = Address::new(POINTER);
    assert_eq!(
        called(&stub, CALL, Some(POINTER), &mut process),
        Ok(vec![FramePc::Native { method }])
    );
}

#[test]
fn a_method_that_cannot_be_read_is_no_frame_at_its_beginning() {
    let (mut process, image) = process();
    for owner in [Owner::Pointer(POINTER), Owner::Stub] {
        let code = code(CATCHING, &image, Some(owner));
        assert_eq!(
            called(&code, CALL, Some(POINTER), &mut process),
            Err(Reason::UnknownMethod)
        );
    }
}

#[test]
fn methods_inlined_into_one_that_is_gone_are_gone() {
    let (mut process, image) = process();
    let code = code(CATCHING, &image, None);
    let id = InlinedId::Index(InlinedDexFile::Outer, 0);
    let gone = inlined_method(&code, id, &Method::Gone, &mut process);
    assert!(matches!(gone, Method::Gone), "{gone:?}");
    let unknown = inlined_method(&code, id, &Method::Unknown, &mut process);
    assert!(matches!(unknown, Method::Unknown), "{unknown:?}");
}
