//! Tests that the tools which read ELF files accept a substitute, and find the methods' names in it.

use crate::common;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use varid_symbolizer::bytecode::BytecodeImage;
use varid_symbolizer::dex::{DexBytecode, DexFile, MethodIndex};
use varid_symbolizer::elf::{DebugFiles, ElfSource, ElfSymbols};
use varid_symbolizer::substitute::{
    GrowingSubstitute, MethodSlot, MethodSource, Slot, SlotLine, Substitute, TargetMachine,
    append_slots_sym, read_descriptors, sym_file_of, write_sym,
};

const MACHINES: [TargetMachine; 5] = [
    TargetMachine::X86_64,
    TargetMachine::X86,
    TargetMachine::Aarch64,
    TargetMachine::Arm,
    TargetMachine::Riscv64,
];

fn names_dex() -> DexFile<'static> {
    DexFile::from_vec(std::fs::read(common::fixtures().join("names.dex")).unwrap()).unwrap()
}

fn write_dex(folder: &Path, machine: TargetMachine) -> PathBuf {
    let path = folder.join("names.elf");
    let substitute = Substitute::of_dex(&names_dex()).unwrap();
    substitute.for_machine(machine).write(&path).unwrap();
    path
}

/// A dex file whose methods share equal instructions.
fn sharing(name: &str) -> DexBytecode<'static> {
    let bytes = std::fs::read(common::fixtures().join(name)).unwrap();
    DexBytecode::new(DexFile::from_vec(bytes).unwrap()).unwrap()
}

fn write_remap(folder: &Path) -> PathBuf {
    let path = folder.join("remap.elf");
    let slot = |offset, name: &str| Slot {
        offset,
        size: 16,
        name: name.to_owned(),
    };
    let slots = [
        slot(16, "[torn-frames]"),
        slot(0, "[native]"),
        slot(0x1000, "java.lang.Math.sin"),
        slot(0x0fff_fff0, "org.example.Balls.nativeStep"),
    ];
    Substitute::remap(slots, 0x1000_0000, &[7; 20])
        .unwrap()
        .write(&path)
        .unwrap();
    path
}

/// The symbols as printed by `nm`: address, size, name.
fn nm(path: &Path) -> Option<Vec<(u64, u64, String)>> {
    let printed = common::run("nm", &["-S", "--defined-only", common::text(path)])?;
    let hex = |word: &str| u64::from_str_radix(word, 16).unwrap();
    Some(
        printed
            .lines()
            .map(|line| {
                let mut words = line.splitn(4, ' ');
                let (address, size) = (words.next().unwrap(), words.next().unwrap());
                assert_eq!(words.next(), Some("T"));
                (hex(address), hex(size), words.next().unwrap().to_owned())
            })
            .collect(),
    )
}

#[test]
fn every_method_is_a_symbol_over_its_instructions() {
    let folder = tempfile::tempdir().unwrap();
    let dex = names_dex();
    let index = MethodIndex::new(&dex).unwrap();
    let mut expected: Vec<(u64, u64, String)> = index
        .methods()
        .iter()
        .map(|method| {
            let name = dex.method_name(method.index).unwrap();
            (method.code.start.into(), method.code.len() as u64, name)
        })
        .collect();
    for machine in MACHINES {
        let path = write_dex(folder.path(), machine);
        let ours = ElfSymbols::open(&path).unwrap();
        assert_eq!(ours.build_id(), Some(&dex.content_sha1()[..]));
        for (start, size, name) in &expected {
            for address in [*start, start + size - 1] {
                let symbol = ours.lookup_offset(address).unwrap();
                assert_eq!((symbol.start, symbol.end), (*start, start + size));
                assert_eq!(symbol.name(), *name);
            }
        }
        assert_eq!(ours.lookup(expected[0].0 - 1), None);
        if let Some(mut theirs) = nm(&path) {
            theirs.sort();
            expected.sort();
            assert_eq!(theirs, expected, "{machine:?}");
        }
    }
}

#[test]
fn readelf_and_elflint_find_nothing_to_complain_about() {
    let folder = tempfile::tempdir().unwrap();
    let mut files: Vec<PathBuf> = vec![write_remap(folder.path())];
    for machine in MACHINES {
        let path = write_dex(folder.path(), machine);
        let kept = folder.path().join(format!("{machine:?}.elf"));
        std::fs::rename(path, &kept).unwrap();
        files.push(kept);
    }
    // A range that is shorter than the headers.
    let tiny = folder.path().join("tiny.elf");
    Substitute::remap([slot(0, 16)], 16, &[1; 20])
        .unwrap()
        .write(&tiny)
        .unwrap();
    assert!(ElfSymbols::open(&tiny).unwrap().lookup(1).is_some());
    files.push(tiny);
    let grown = folder.path().join("grown.elf");
    write_grown(&grown, &remap_methods());
    files.push(grown);
    for file in &files {
        let file = common::text(file);
        if let Some(printed) = common::run("readelf", &["-aW", file]) {
            for complaint in ["Warning", "Error", "warning", "error"] {
                assert!(!printed.contains(complaint), "{file}: {printed}");
            }
            assert!(printed.contains("DYN (Shared object file)"), "{printed}");
        }
        if let Some(printed) = common::run("eu-elflint", &[file]) {
            assert_eq!(printed.trim(), "No errors", "{file}");
        }
    }
}

#[test]
fn addr2line_and_gdb_name_an_address_within_a_method() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_dex(folder.path(), TargetMachine::host());
    let dex = names_dex();
    let index = MethodIndex::new(&dex).unwrap();
    let method = index
        .methods()
        .iter()
        .find(|method| dex.method_name(method.index).unwrap() == "org.example.Balls.draw(int)")
        .unwrap();
    let address = format!("{:#x}", method.code.start + 4);
    for program in ["addr2line", "eu-addr2line"] {
        if let Some(printed) = common::run(program, &["-f", "-e", common::text(&path), &address]) {
            assert_eq!(
                printed.lines().next(),
                Some("org.example.Balls.draw(int)"),
                "{program}"
            );
        }
    }
    let command = format!("info symbol {address}");
    let arguments = ["-batch", "-nx", "-ex", &command, common::text(&path)];
    if let Some(printed) = common::run("gdb", &arguments) {
        assert!(
            printed.contains("org.example.Balls.draw(int) + 4 in section .text"),
            "{printed}"
        );
    }
}

#[test]
fn the_remap_range_holds_its_first_and_last_slot() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_remap(folder.path());
    let symbols = ElfSymbols::open(&path).unwrap();
    let name = |offset| {
        symbols
            .lookup_offset(offset)
            .map(|symbol| symbol.name().into_owned())
    };
    assert_eq!(name(0).as_deref(), Some("[native]"));
    assert_eq!(name(15).as_deref(), Some("[native]"));
    assert_eq!(name(16).as_deref(), Some("[torn-frames]"));
    assert_eq!(name(32), None);
    assert_eq!(
        name(0x0fff_ffff).as_deref(),
        Some("org.example.Balls.nativeStep")
    );
    assert_eq!(symbols.build_id(), Some(&[7; 20][..]));
    // 256 MB of addresses take almost no disk space.
    assert!(std::fs::metadata(&path).unwrap().blocks() * 512 < 1 << 20);
}

/// Methods of which some have lines, by ascending address.
fn remap_methods() -> Vec<MethodSlot> {
    let method = |offset, name: &str, lines: &[(u32, u32)]| MethodSlot {
        descriptor: "(I)V".to_owned(),
        slot: Slot {
            offset,
            size: 16,
            name: name.to_owned(),
        },
        source: Some(MethodSource {
            class: "org.example.App".to_owned(),
            file: "App.java".to_owned(),
            lines: lines
                .iter()
                .map(|&(offset, line)| SlotLine { offset, line })
                .collect(),
        }),
    };
    vec![
        slot(0x100, 16).into(),
        // A line behind the end is that of no instruction.
        method(0x110, "org.example.App.mul", &[(0, 7), (5, 9), (16, 30)]),
        method(0x120, "org.example.App.run", &[(4, 3)]),
    ]
}

/// Writes a file with all methods but the last one, and appends that.
fn write_grown(path: &Path, methods: &[MethodSlot]) {
    let mut growing = GrowingSubstitute::new(&[1; 20]);
    let first = methods.split_last().unwrap().1;
    growing.write(path, first, 0x120).unwrap();
    let file = std::fs::File::open(path).unwrap();
    growing.write(path, methods, 0x200).unwrap();
    let same = file.metadata().unwrap().ino() == path.metadata().unwrap().ino();
    assert!(same, "the method is appended to the file");
}

#[test]
fn methods_of_the_remap_range_have_lines() {
    let folder = tempfile::tempdir().unwrap();
    let (written, grown) = (
        folder.path().join("remap.elf"),
        folder.path().join("grown.elf"),
    );
    let mut methods = remap_methods();
    write_grown(&grown, &methods);
    methods.swap(0, 2);
    Substitute::remap(methods, 0x200, &[1; 20])
        .unwrap()
        .write(&written)
        .unwrap();
    for path in [&written, &grown] {
        assert_has_lines(path);
    }
}

#[test]
fn descriptors_of_the_remap_range_are_in_its_text_form() {
    let folder = tempfile::tempdir().unwrap();
    let sym = sym_file_of(&folder.path().join("remap.elf"));
    let methods = remap_methods();
    append_slots_sym(&methods[..2], &sym).unwrap();
    append_slots_sym(&methods[2..], &sym).unwrap();
    let text = std::fs::read_to_string(&sym).unwrap();
    let line = "0x110\t16\torg.example.App\tmul\t(I)V\tApp.java\t7\n";
    assert!(text.contains(line), "{text}");
    assert_eq!(text.matches('#').count(), 1, "{text}");
    let descriptors = [0x110, 0x120].map(|address| (address, "(I)V".to_owned()));
    assert_eq!(read_descriptors(&sym), descriptors.into());
    std::fs::write(&sym, b"#\n0x1\n0xg\t1\ta\tb\t()V\n0x2\t1\ta\tb\t-\n\xff").unwrap();
    assert_eq!(read_descriptors(&sym), [].into());
    // Nobody writes into the pipe.
    std::fs::remove_file(&sym).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&sym).status();
    assert!(made.unwrap().success());
    assert_eq!(read_descriptors(&sym), [].into());
}

/// Asserts that a file has the methods' names and lines, as varid and addr2line read it.
fn assert_has_lines(path: &Path) {
    let source = ElfSource::open(path, &DebugFiles::none()).unwrap();
    let found = |address| {
        let frames = source.frames(address);
        let frame = frames.first().unwrap();
        let location = frame.location.as_ref();
        let line = location.map(|line| (line.file.to_string(), line.line));
        (frame.function.to_string(), line)
    };
    let cases = [
        (0x105, "x", None),
        (0x110, "org.example.App.mul", Some(7)),
        (0x11f, "org.example.App.mul", Some(9)),
        (0x122, "org.example.App.run", None),
        (0x124, "org.example.App.run", Some(3)),
    ];
    for (address, name, line) in cases {
        let line = line.map(|line| ("org/example/App.java".to_owned(), line));
        assert_eq!(
            found(address),
            (name.to_owned(), line.clone()),
            "{address:#x}"
        );
        let Some((file, line)) = line else { continue };
        let address = format!("{address:#x}");
        for program in ["addr2line", "eu-addr2line"] {
            let arguments = ["-f", "-e", common::text(path), &address];
            if let Some(printed) = common::run(program, &arguments) {
                let has_both =
                    printed.contains(name) && printed.contains(&format!("{file}:{line}"));
                assert!(has_both, "{program} {address}: {printed}");
            }
        }
    }
}

fn slot(offset: u64, size: u64) -> Slot {
    Slot {
        offset,
        size,
        name: "x".to_owned(),
    }
}

#[test]
fn slots_that_do_not_fit_are_refused() {
    for (offset, size) in [(0, 0), (0, 17), (16, 1), (u64::MAX, 2)] {
        let error = Substitute::remap([slot(offset, size)], 16, &[1]).unwrap_err();
        assert!(error.to_string().contains("slot `x`"), "{error}");
    }
    assert!(Substitute::remap([slot(0, 16)], 16, &[]).is_err());
    assert!(Substitute::remap([slot(0, 16)], 16, &[1; 65]).is_err());
    assert!(Substitute::remap([slot(0, 16)], 16, &[1]).is_ok());
}

#[test]
fn a_file_that_cannot_be_written_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join("names.elf");
    std::fs::create_dir(&taken).unwrap();
    let substitute = Substitute::of_dex(&names_dex()).unwrap();
    let error = substitute.write(&taken).unwrap_err().to_string();
    assert!(error.contains("names.elf"), "{error}");
    assert!(
        substitute
            .write(&folder.path().join("absent/names.elf"))
            .is_err()
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_text_form_has_a_line_for_each_method_with_code() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("substitute.sym");
    let dex = names_dex();
    write_sym(&DexBytecode::new(names_dex()).unwrap(), &path).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("# address\tsize\tclass\tmethod\tsignature\tsource\tline")
    );
    let mut rows: Vec<Vec<&str>> = lines.map(|line| line.split('\t').collect()).collect();
    let last = rows.pop().unwrap();
    assert!(last[0].starts_with("# end of "), "{last:?}");
    assert_eq!(rows.len(), MethodIndex::new(&dex).unwrap().methods().len());
    assert!(rows.iter().all(|row| row.len() == 7));
    let row = rows.iter().find(|row| row[3] == "helper").unwrap();
    assert_eq!(
        row[1..],
        [
            "4",
            "org.example.Balls",
            "helper",
            "([[JLjava/lang/String;Lorg/example/Balls$Inner;Z)[Ljava/lang/String;",
            "Balls.java",
            "-"
        ]
    );
    let draw = rows.iter().find(|row| row[4] == "()V" && row[3] == "draw");
    assert_eq!(draw.unwrap()[5..], ["Balls.java", "30"]);
    let inner = rows.iter().find(|row| row[3] == "switch").unwrap();
    assert_eq!(inner[5], "-");
}

/// A container of `headers` headers, which all claim the same classes. There are `methods` methods in one class, all with the same code and
/// names of twice `name` bytes. If `broken`, every second method's name is broken.
fn container(headers: usize, methods: usize, name: usize, broken: bool) -> Vec<u8> {
    let aligned = |bytes: &mut Vec<u8>| bytes.resize(bytes.len().next_multiple_of(4), 0);
    let uleb = |bytes: &mut Vec<u8>, mut value: usize| {
        while value > 0x7f {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    };
    let words = |bytes: &mut Vec<u8>, words: &[usize]| {
        let words = words.iter().flat_map(|word| (*word as u32).to_le_bytes());
        bytes.extend(words);
    };
    let mut bytes = vec![0; 0x78 * headers];
    let text = bytes.len();
    uleb(&mut bytes, name);
    bytes.resize(bytes.len() + name, b'n');
    let other = bytes.len() + 1;
    bytes.extend([0, 1, b'o', 0]);
    aligned(&mut bytes);
    let strings = bytes.len();
    words(&mut bytes, &[text, other, 0]);
    let method_ids = bytes.len();
    for method in 0..methods {
        // No neighbours have the same name, so they are not overloads.
        let named = if method % 2 == 0 {
            0
        } else if broken {
            9
        } else {
            1
        };
        words(&mut bytes, &[0, named]);
    }
    let class_defs = bytes.len();
    let code = (class_defs + 32 + 8 + 6 * methods).next_multiple_of(4);
    words(&mut bytes, &[0, 0, 0, 0, usize::MAX, 0, class_defs + 32, 0]);
    bytes.extend([0, 0]);
    uleb(&mut bytes, methods);
    bytes.push(0);
    for method in 0..methods {
        bytes.extend([u8::from(method != 0), 1]);
        uleb(&mut bytes, code + 4 * method);
    }
    bytes.resize(code, 0);
    words(&mut bytes, &vec![1; methods + 4]);
    let size = bytes.len();
    for header in (0..headers).map(|header| 0x78 * header) {
        let last = header + 0x78 == 0x78 * headers;
        bytes[header..header + 8].copy_from_slice(b"dex\n041\0");
        for (field, value) in [
            (0x20, if last { size - header } else { 0x78 }),
            (0x24, 0x78),
            (0x28, 0x1234_5678),
            (0x38, 2),
            (0x3c, strings),
            (0x40, 1),
            // The descriptor of the type is the first string.
            (0x44, strings + 8),
            (0x58, methods),
            (0x5c, method_ids),
            (0x60, 1),
            (0x64, class_defs),
            (0x70, size),
            (0x74, header),
        ] {
            bytes[header + field..header + field + 4]
                .copy_from_slice(&(value as u32).to_le_bytes());
        }
    }
    bytes
}

/// The names in the substitute of a dex file.
fn names(bytes: &[u8]) -> Vec<String> {
    let substitute = Substitute::of_dex(&DexFile::parse(bytes).unwrap()).unwrap();
    let names = substitute.slots().iter().map(|slot| slot.name.clone());
    names.collect()
}

#[test]
fn a_broken_dex_file_of_a_container_does_not_take_the_names_of_the_others() {
    let whole = container(2, 2, 3, false);
    let both = ["nnn.nnn and 1 more", "nnn.o and 1 more"];
    let found = names(&whole);
    assert_eq!(found[..2], both);
    // Each file's own copies follow.
    assert_eq!(found[2..], ["nnn.nnn", "nnn.o", "nnn.nnn", "nnn.o"]);
    // Breaks the magic number of the second header, then its table of classes.
    for (at, with) in [(0x78, *b"dux\n"), (0x78 + 0x64, 0x90u32.to_le_bytes())] {
        let mut bytes = whole.clone();
        bytes[at..at + 4].copy_from_slice(&with);
        assert_eq!(names(&bytes), ["nnn.nnn", "nnn.o"], "{at:#x}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("substitute.sym");
        let dex = DexBytecode::new(DexFile::parse(&bytes).unwrap()).unwrap();
        write_sym(&dex, &path).unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 4);
    }
}

#[test]
fn names_that_are_broken_or_too_many_take_away_no_others() {
    // As many broken names as would take 64 MB if each had the longest possible length.
    let found = names(&container(1, 2100, 3, true));
    let named = found.iter().filter(|name| *name == "nnn.nnn").count();
    assert_eq!((found.len(), named), (2100, 1050));
    assert_eq!(found[1], "method@1");
    // Names alternate between 120 KB and 60 KB: 64 MB are full before the 800th. The names of all that follow stay distinct.
    let found = names(&container(1, 1600, 60_000, false));
    let named = found.iter().filter(|name| name.starts_with("nnn")).count();
    assert!((600..800).contains(&named), "{named}");
    assert_eq!((found.len(), &*found[1599]), (1600, "method@1599"));
}

/// Each dex file has tables of its own. If all claim the same tables, they are not read for each.
#[test]
fn a_container_s_dex_files_are_read_as_long_as_they_have_room() {
    let found = names(&container(300, 1000, 3, false));
    let others = found[0].strip_prefix("nnn.nnn and ").unwrap();
    let others: u32 = others.strip_suffix(" more").unwrap().parse().unwrap();
    assert!((1..20).contains(&others), "{others}");
}

#[test]
fn a_thumb_function_starts_at_its_even_address() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("thumb.elf");
    let slot = Slot {
        offset: 0x101,
        size: 0x20,
        name: "thumb".to_owned(),
    };
    let substitute = Substitute::remap([slot], 0x200, &[1]).unwrap();
    substitute
        .clone()
        .for_machine(TargetMachine::Arm)
        .write(&path)
        .unwrap();
    let start = |symbols: ElfSymbols| symbols.lookup(0x110).unwrap().start;
    assert_eq!(start(ElfSymbols::open(&path).unwrap()), 0x100);
    substitute
        .for_machine(TargetMachine::Aarch64)
        .write(&path)
        .unwrap();
    assert_eq!(start(ElfSymbols::open(&path).unwrap()), 0x101);
}

/// In a plain dex file, both methods have the lines of the first one: lines belong to the code item.
#[test]
fn methods_that_share_instructions_have_names_and_lines_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    for (file, of_two) in [("shared.cdex", 21), ("shared.dex", 11)] {
        let image = sharing(file);
        let path = folder.path().join(file);
        Substitute::of_bytecode(&image).write(&path).unwrap();
        let source = ElfSource::open(&path, &DebugFiles::none()).unwrap();
        let mut found = Vec::new();
        for copy in image.copies().iter() {
            let original = copy.method.code.start;
            let shared = source.frames(original.into());
            assert!(shared[0].function.ends_with(" more"), "{shared:?}");
            for offset in copy.code.clone() {
                let frames = source.frames(offset.into());
                assert_eq!(frames.len(), 1, "{file} {offset:#x}");
                let own = image.frame(offset).unwrap();
                assert_eq!(frames[0].function, own.function);
                let (at, location) = (&frames[0].location, own.location.unwrap());
                let at = at.as_ref().unwrap();
                assert!(at.file.ends_with(&*location.file), "{at:?} {location:?}");
                assert_eq!(at.line, location.line);
            }
            let first = image.frame(copy.code.start).unwrap();
            found.push((first.function, first.location.unwrap().line));
        }
        let found: Vec<_> = found.iter().map(|(name, line)| (&**name, *line)).collect();
        let named = |name: &str, lines: [u32; 3]| {
            let name = |method| format!("org.example.shared.{name}.{method}");
            ["<init>", "go", "turn"].map(name).into_iter().zip(lines)
        };
        let of_two = named("Two", [of_two - 1, of_two + 2, of_two]);
        let expected: Vec<_> = named("One", [10, 13, 11]).chain(of_two).collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, line)| (&**name, *line))
            .collect();
        assert_eq!(found, expected, "{file}");
        let Some(symbols) = nm(&path) else { continue };
        for copy in image.copies().iter() {
            let of = |symbol: &&(u64, u64, String)| symbol.0 == u64::from(copy.code.start);
            let (_, size, name) = symbols.iter().find(of).unwrap();
            assert_eq!(*size, copy.code.len() as u64);
            assert_eq!(Some(name), image.method_name(copy.method.index).as_ref());
        }
    }
}
