//! Tests a bytecode image of another format than dex: other tools read its substitute, and the default methods give the right results.

use crate::common;

use std::path::Path;

use varid_symbolizer::bytecode::{BytecodeImage, CodeLine, Dispatch, MethodCode};
use varid_symbolizer::dex::{DexBytecode, DexFile, MethodIndex};
use varid_symbolizer::elf::{DebugFiles, ElfSource, ElfSymbols};
use varid_symbolizer::substitute::{Cache, Substitute, TargetMachine, write_sym};

const MACHINES: [TargetMachine; 5] = [
    TargetMachine::X86_64,
    TargetMachine::X86,
    TargetMachine::Aarch64,
    TargetMachine::Arm,
    TargetMachine::Riscv64,
];

/// A format for this test. An instruction is one byte, and code starts at offset 16. Four methods in two classes have code, and one is only
/// referenced. Each byte has its own line, in descending order. Every odd line is in an included file.
#[derive(Debug)]
struct Stack {
    bytes: Vec<u8>,
    methods: Vec<MethodCode>,
}

const CLASSES: [&str; 2] = ["org.stack.Main", "org.stack.util.List$1"];
const NAMES: [&str; 5] = ["<clinit>", "main", "push", "pop", "print"];

impl Stack {
    fn new(size: usize) -> Self {
        let method = |(index, code): (u32, std::ops::Range<u32>)| MethodCode {
            code,
            index,
            others: u32::from(index == 3),
            access_flags: 9,
            class: index / 2,
        };
        let codes = [(0, 16..17), (1, 17..300), (2, 300..303), (3, 310..330)];
        Self {
            bytes: (0..size).map(|offset| (offset % 7) as u8).collect(),
            methods: codes.into_iter().map(method).collect(),
        }
    }

    /// The expected function, file and line of a byte.
    fn expected(&self, offset: u32) -> Option<(String, &'static str, u32)> {
        let method = self
            .methods
            .iter()
            .find(|method| method.code.contains(&offset))?;
        let line = 1000 - offset;
        Some((
            self.code_name(method)?,
            if line.is_multiple_of(2) {
                "Main.st"
            } else {
                "inc.st"
            },
            line,
        ))
    }
}

impl BytecodeImage for Stack {
    fn content_id(&self) -> [u8; 20] {
        [0x5a; 20]
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn code_unit(&self) -> u8 {
        1
    }

    fn methods(&self) -> &[MethodCode] {
        &self.methods
    }

    fn method_count(&self) -> u32 {
        5
    }

    fn class_name(&self, index: u32) -> Option<String> {
        Some((*CLASSES.get(index as usize / 2)?).to_owned())
    }

    fn simple_name(&self, index: u32) -> Option<String> {
        Some((*NAMES.get(index as usize)?).to_owned())
    }

    fn descriptor(&self, _: u32) -> Option<String> {
        Some("()V".to_owned())
    }

    fn source_file(&self, method: &MethodCode) -> Option<String> {
        (method.class == 0).then(|| "Main.st".to_owned())
    }

    fn lines(&self, method: &MethodCode) -> Option<Vec<CodeLine>> {
        let line = |offset: u32| CodeLine {
            offset,
            line: 1000 - offset,
            source: Some(offset % 2),
        };
        Some(method.code.clone().map(line).collect())
    }

    fn line_source(&self, _: &MethodCode, source: u32) -> Option<String> {
        Some(["Main.st", "inc.st"][source as usize].to_owned())
    }

    fn instruction_before(&self, offset: u32, opcode: u8) -> Option<u32> {
        let before = offset.checked_sub(1)?;
        (self.bytes.get(before as usize) == Some(&opcode)).then_some(before)
    }
}

#[test]
fn another_format_s_substitute_has_its_names_and_lines() {
    let folder = tempfile::tempdir().unwrap();
    let stack = Stack::new(400);
    for machine in MACHINES {
        let path = folder.path().join(format!("{machine:?}.elf"));
        let substitute = Substitute::of_bytecode(&stack).for_machine(machine);
        substitute.write(&path).unwrap();
        let symbols = ElfSymbols::open(&path).unwrap();
        assert_eq!(symbols.build_id(), Some(&[0x5a; 20][..]));
        let source = ElfSource::open(&path, &DebugFiles::none()).unwrap();
        for offset in 0..400u32 {
            let expected = stack.expected(offset);
            let found = match &source.frames(offset.into())[..] {
                [frame] => {
                    let location = frame.location.as_ref().unwrap();
                    let file = location.file.rsplit('/').next().unwrap();
                    Some((frame.function.to_string(), file.to_owned(), location.line))
                }
                [] => None,
                more => panic!("{more:?}"),
            };
            let expected = expected.map(|(name, file, line)| (name, file.to_owned(), line));
            assert_eq!(found, expected, "{machine:?} {offset}");
        }
        let file = common::text(&path);
        if let Some(printed) = common::run("readelf", &["-aW", file]) {
            assert!(!printed.to_lowercase().contains("warning"), "{printed}");
            assert!(printed.contains(" 20 FUNC    GLOBAL DEFAULT"), "{printed}");
        }
        if let Some(printed) = common::run("eu-elflint", &[file]) {
            assert_eq!(printed.trim(), "No errors", "{file}");
        }
    }
}

#[test]
fn addr2line_says_of_another_format_what_the_image_does() {
    let folder = tempfile::tempdir().unwrap();
    let stack = Stack::new(400);
    let path = folder.path().join("stack.elf");
    Substitute::of_bytecode(&stack).write(&path).unwrap();
    let offsets = (16..303).chain(310..330);
    let addresses: Vec<String> = offsets.clone().map(|at| format!("{at:#x}")).collect();
    for program in ["addr2line", "eu-addr2line"] {
        let mut arguments = vec!["-f", "-s", "-e", common::text(&path)];
        arguments.extend(addresses.iter().map(String::as_str));
        let Some(printed) = common::run(program, &arguments) else {
            continue;
        };
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(lines.len(), 2 * addresses.len(), "{printed}");
        for (offset, said) in offsets.clone().zip(lines.chunks(2)) {
            let (name, file, line) = stack.expected(offset).unwrap();
            assert_eq!(said[0], name, "{program} {offset}");
            let place = said[1].split(" (").next().unwrap();
            let place = place.strip_suffix(":0").unwrap_or(place);
            assert_eq!(place, format!("{file}:{line}"), "{program} {offset}");
        }
    }
}

#[test]
fn an_image_answers_by_default_from_its_methods_and_lines() {
    let stack = Stack::new(400);
    let image: &dyn BytecodeImage = &stack;
    for offset in (0..400).chain([u32::MAX]) {
        let frame = image.frame(offset).map(|frame| {
            let location = frame.location.unwrap();
            (frame.function.into_owned(), location.file, location.line)
        });
        let expected = stack
            .expected(offset)
            .map(|(name, file, line)| (name, file.into(), line));
        assert_eq!(frame, expected, "{offset}");
    }
    assert_eq!(image.method_name(4), None);
    assert_eq!(
        image.method_name(2).as_deref(),
        Some("org.stack.util.List$1.push")
    );
    assert_eq!(image.method_at(302).map(|method| method.index), Some(2));
    assert_eq!(image.method_at(303), None);
    assert_eq!(image.definitions().count(), 4);
    assert_eq!(image.invoked_method(17), None);
    assert_eq!(image.method_by_names(0, 0, 0), None);
}

#[test]
fn another_format_s_text_form_and_cache_entry_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // Also test an image that is shorter than an ELF header.
    for size in [400, 20] {
        let mut stack = Stack::new(size);
        stack
            .methods
            .retain(|method| method.code.end as usize <= size);
        let user = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(folder.path()).unwrap());
        let cache = path(&format!("cache-{size}/varid"));
        let cache = Cache::open(&cache, user, 1 << 20).unwrap();
        for reused in [false, true] {
            let provided = cache.provide(&stack, &path("a.elf"), &path("a.sym"));
            assert_eq!(provided.unwrap().reused, reused, "{size}");
        }
    }
    write_sym(&Stack::new(400), &path("stack.sym")).unwrap();
    let text = std::fs::read_to_string(path("stack.sym")).unwrap();
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(
        rows[1..5],
        [
            "0x10\t1\torg.stack.Main\t<clinit>\t()V\tMain.st\t984",
            "0x11\t283\torg.stack.Main\tmain\t()V\tMain.st\t983",
            "0x12c\t3\torg.stack.util.List$1\tpush\t()V\t-\t700",
            "0x136\t20\torg.stack.util.List$1\tpop\t()V\t-\t690",
        ]
    );
    assert_eq!(rows[5], format!("# end of {}", "5a".repeat(20)));
}

/// A dex file of the fixtures.
fn dex(name: &str) -> DexFile<'static> {
    DexFile::from_vec(std::fs::read(common::fixtures().join(Path::new(name))).unwrap()).unwrap()
}

#[test]
fn a_dex_file_answers_as_an_image_what_it_answers_itself() {
    for name in ["names.dex", "items.dex", "items.cdex"] {
        let own = dex(name);
        let dex = dex(name);
        let index = MethodIndex::new(&dex).unwrap();
        let image = DexBytecode::new(own).unwrap();
        assert_eq!(image.methods(), index.methods());
        assert_eq!(image.content_id(), dex.content_sha1());
        assert_eq!(image.method_count(), dex.method_count());
        for number in 0..=dex.method_count() {
            assert_eq!(image.method_name(number), dex.method_name(number).ok());
        }
        let mut invoked = 0;
        for method in index.methods() {
            let mut before = None;
            for instruction in dex.disassemble(method).flatten() {
                let offset = instruction.offset;
                assert_eq!(image.frame(offset), dex.frame(&index, offset));
                // For each instruction that continues with the next one, the result is this instruction, or None if there are several.
                if let Some((at, code)) = before.take() {
                    let found = image.instruction_before(offset, code);
                    assert!(found.is_none_or(|found| found == at), "{offset:#x}");
                    assert_eq!(found, image.instruction_before(offset, code));
                }
                before = Some((offset, instruction.code()));
                before.take_if(|_| !instruction.may_lead_to(offset + 2 * instruction.units));
                if let Some(found) = image.invoked_method(offset) {
                    let (text, callee) = (instruction.to_string(), found.index);
                    let by_receiver = ["invoke-virtual", "invoke-interface"];
                    let is_by_receiver = by_receiver.iter().any(|start| text.starts_with(start));
                    assert_eq!(
                        found.dispatch == Dispatch::Receiver,
                        is_by_receiver,
                        "{text}"
                    );
                    let descriptor = image.descriptor(callee).unwrap();
                    let end = format!(
                        ".{}:{descriptor} // method@{callee:04x}",
                        image.simple_name(callee).unwrap()
                    );
                    assert!(text.starts_with("invoke") && text.ends_with(&end), "{text}");
                    invoked += 1;
                }
            }
        }
        assert!(invoked > 0, "{name}");
    }
}
