//! Tests lines, instructions and try ranges that no compiler writes, also in compact dex files.

use crate::common;

use varid_symbolizer::dex::{DexFile, Dialect, LineRow, MethodCode, MethodIndex};

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(common::fixtures().join(name)).unwrap()
}

fn method(dex: &DexFile<'_>, name: &str) -> MethodCode {
    let name = format!("org.example.corpus.{name}");
    let index = MethodIndex::new(dex).unwrap();
    let is_it = |method: &&MethodCode| dex.method_name(method.index).unwrap() == name;
    index.methods().iter().find(is_it).unwrap().clone()
}

/// The rows as offset in code units, line and file.
fn rows(dex: &DexFile<'_>, method: &MethodCode) -> Vec<(u32, u32, Option<String>)> {
    let row = |row: &LineRow| {
        let pc = (row.offset - method.code.start) / 2;
        (
            pc,
            row.line,
            row.source.map(|source| dex.string(source).unwrap()),
        )
    };
    dex.lines(method).unwrap().rows().iter().map(row).collect()
}

#[test]
fn the_source_file_changes_within_a_method() {
    for name in ["items.dex", "items.cdex"] {
        let bytes = fixture(name);
        let dex = DexFile::parse(&bytes).unwrap();
        let other_files = method(&dex, "Lines.otherFiles");
        let file = |name: &str| Some(name.to_owned());
        assert_eq!(
            rows(&dex, &other_files),
            [
                (0, 1, file("Lines.java")),
                (1, 2, file("Other.java")),
                (3, 3, file("Third.kt")),
                (4, 4, None),
                (5, 5, file("Lines.java")),
            ]
        );
        assert_eq!(dex.source_file(&other_files).unwrap(), file("Lines.java"));
        let index = MethodIndex::new(&dex).unwrap();
        let at = |pc: u32| {
            let frame = dex.frame(&index, other_files.code.start + pc * 2).unwrap();
            assert_eq!(frame.function, "org.example.corpus.Lines.otherFiles");
            frame
                .location
                .map(|place| (place.file.into_owned(), place.line))
        };
        assert_eq!(at(2), Some(("Other.java".to_owned(), 2)));
        // A file without a name has the class's name.
        assert_eq!(at(4), Some(("Lines".to_owned(), 4)));
        assert_eq!(at(5), Some(("Lines.java".to_owned(), 5)));
        let start = method(&dex, "NoSource.lines").code.start;
        let place = dex.frame(&index, start).unwrap().location.unwrap();
        assert_eq!((&*place.file, place.line), ("NoSource", 1));
        // No lines; line zero; before the first line.
        for (name, pc) in [
            ("Lines.noDebugInfo", 0),
            ("Lines.lateStart", 2),
            ("Lines.jumps", 6),
        ] {
            let frame = dex
                .frame(&index, method(&dex, name).code.start + pc * 2)
                .unwrap();
            assert_eq!(frame.location, None, "{name}");
        }
    }
}

#[test]
fn marks_and_names_of_parameters() {
    let bytes = fixture("items.dex");
    let dex = DexFile::parse(&bytes).unwrap();
    let table = dex
        .lines(&method(&dex, "Lines.prologueAndEpilogue"))
        .unwrap();
    let marks: Vec<_> = table
        .rows()
        .iter()
        .map(|row| (row.line, row.prologue_end, row.epilogue_begin))
        .collect();
    assert_eq!(
        marks,
        [
            (5, true, false),
            (6, false, false),
            (7, true, false),
            (8, false, true)
        ]
    );
    let table = dex.lines(&method(&dex, "Lines.namesOnly")).unwrap();
    assert!(table.rows().is_empty());
    let names: Vec<_> = table
        .parameters()
        .iter()
        .map(|name| name.map(|name| dex.string(name).unwrap()))
        .collect();
    let name = |name: &str| Some(name.to_owned());
    assert_eq!(names, [name("count"), name("time"), None, name("ratio")]);
}

#[test]
fn of_several_lines_for_an_instruction_vms_take_the_first() {
    let bytes = fixture("items.dex");
    let dex = DexFile::parse(&bytes).unwrap();
    let crowded = method(&dex, "Lines.crowded");
    let table = dex.lines(&crowded).unwrap();
    let line = |offset: u32| table.lookup(offset).map(|row| row.line);
    assert_eq!(line(crowded.code.start), Some(1));
    // Within the instruction, where no pc can be, the last row is found.
    assert_eq!(line(crowded.code.start + 1), Some(3));
    assert_eq!(line(crowded.code.start - 1), None);
}

/// A dex file with `stream` appended as the debug_info_item of `method`.
fn with_debug_info(original: &[u8], method: &MethodCode, stream: &[u8]) -> Vec<u8> {
    let mut bytes = original.to_vec();
    let field = method.code.start as usize - 8;
    bytes[field..field + 4].copy_from_slice(&(original.len() as u32).to_le_bytes());
    bytes.extend(stream);
    let size = bytes.len() as u32;
    bytes[0x20..0x24].copy_from_slice(&size.to_le_bytes());
    bytes
}

#[test]
fn debug_information_that_lies_leaves_what_is_true() {
    let original = fixture("items.dex");
    let dex = DexFile::parse(&original).unwrap();
    // The method has six code units.
    let target = method(&dex, "Lines.otherFiles");
    let read = |stream: &[u8]| {
        let bytes = with_debug_info(&original, &target, stream);
        let dex = DexFile::parse(&bytes).unwrap();
        let table = dex.lines(&target).map_err(|error| error.to_string())?;
        let rows: Vec<_> = table
            .rows()
            .iter()
            .map(|row| ((row.offset - target.code.start) / 2, row.line))
            .collect();
        Ok::<_, String>((rows, table.problem().map(ToString::to_string)))
    };
    let problem_of = |stream: &[u8]| read(stream).unwrap().1.unwrap();

    // Rows after the method's end, as if methods shared the information of the longest one.
    let shared: Vec<u8> = [1, 0]
        .into_iter()
        .chain([0x0e; 1])
        .chain([0x1e; 200])
        .chain([0])
        .collect();
    let (rows, problem) = read(&shared).unwrap();
    assert_eq!(rows, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]);
    assert_eq!(problem, None);

    // A negative line is invalid. The lines after it are right.
    let (rows, problem) = read(&[5, 0, 2, 0x76, 0x0e, 2, 0x0d, 0x1e, 0]).unwrap();
    assert_eq!(rows, [(0, 0), (1, 9)]);
    assert!(problem.unwrap().contains("line"));
    // The register wraps as in VMs.
    let (rows, _) = read(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0, 2, 8, 0x0e, 0]).unwrap();
    assert_eq!(rows, [(0, 7)]);

    // More rows for one instruction than any method needs.
    let endless: Vec<u8> = [1, 0].into_iter().chain([0x0f; 100_000]).collect();
    assert!(problem_of(&endless).contains("more than the method's instructions can need"));
    assert!(read(&endless).unwrap().0.len() < 1_000);
    // The stream is truncated.
    let problem = problem_of(&[1, 0, 0x0e, 2]);
    assert!(
        problem.contains("DBG_ADVANCE_LINE at offset 0x"),
        "{problem}"
    );
    assert_eq!(read(&[1, 0, 0x0e, 2]).unwrap().0, [(0, 1), (1, 0)]);
    let problem = problem_of(&[1, 0, 0x0e, 3, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80]);
    assert!(
        problem.contains("DBG_START_LOCAL at offset 0x"),
        "{problem}"
    );
    // The address overflows.
    let far = [1, 0, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 3, 0x0e, 0];
    assert_eq!(read(&far).unwrap(), (vec![], None));
    // The beginning is incomplete.
    for (stream, field) in [
        (&[][..], "line_start"),
        (&[1], "parameters_size"),
        (&[1, 0x80, 2], "parameters_size"),
        (&[1, 2, 0], "parameter_names"),
    ] {
        let error = read(stream).unwrap_err();
        assert!(error.contains(&format!("{field} at offset 0x")), "{error}");
    }
}

/// Everything that can be read of a method, as text.
fn everything(dex: &DexFile<'_>, method: &MethodCode) -> String {
    let mut text = format!("{:?}", dex.code_item(method));
    match dex.lines(method) {
        Ok(table) => text += &format!("{:?}", (table.rows(), table.parameters(), table.problem())),
        Err(error) => text += &error.to_string(),
    }
    match dex.tries(method) {
        Ok(tries) => tries.for_each(|range| text += &format!("{range:?}")),
        Err(error) => text += &error.to_string(),
    }
    for instruction in dex.disassemble(method) {
        match instruction {
            Ok(instruction) => text += &format!("{} {instruction}\n", instruction.offset),
            Err(error) => text += &error.to_string(),
        }
    }
    text
}

#[test]
fn a_broken_method_leaves_its_neighbours_whole() {
    for name in ["items.dex", "items.cdex"] {
        let original = fixture(name);
        let dex = DexFile::parse(&original).unwrap();
        let compact = dex.is_compact();
        let whole = MethodIndex::new(&dex).unwrap();
        let texts: Vec<_> = whole
            .methods()
            .iter()
            .map(|method| everything(&dex, method))
            .collect();
        for broken in whole.methods() {
            let start = broken.code.start as usize;
            for value in [0xff, 0x80, 0x01, 0x00] {
                let mut bytes = original.clone();
                bytes[start - if compact { 4 } else { 16 }..start].fill(value);
                let dex = DexFile::parse(&bytes).unwrap();
                let index = MethodIndex::new(&dex).unwrap();
                for (method, text) in whole.methods().iter().zip(&texts) {
                    // The sizes of a compact method may precede it, where they are part of another one.
                    if method.index != broken.index {
                        assert_eq!(everything(&dex, method), *text);
                        let found = index.lookup(method.code.start).map(|found| found.index);
                        assert_eq!(found, Some(method.index), "{name}");
                    }
                }
            }
        }
    }
}

#[test]
fn any_bytes_are_read_without_panic_and_errors_say_where() {
    let mut numbers = common::Numbers(0x1234_5678_9abc_def1);
    let telling = [0x00, 0x01, 0x7f, 0x80, 0xff];
    for name in ["items.dex", "items.cdex"] {
        let original = fixture(name);
        for _ in 0..1_000 {
            let mut bytes = original.clone();
            for _ in 0..=numbers.below(40) {
                let at = numbers.below(bytes.len() as u64) as usize;
                bytes[at] = match numbers.below(2) {
                    0 => telling[numbers.below(5) as usize],
                    _ => numbers.below(256) as u8,
                };
            }
            // With a modified header, most files would be rejected at once.
            bytes[..0x88].copy_from_slice(&original[..0x88]);
            let dex = DexFile::parse(&bytes).unwrap();
            let Ok(index) = MethodIndex::new(&dex) else {
                continue;
            };
            let mut end = 0;
            for method in index.methods() {
                assert!(method.code.start >= end, "methods overlap");
                end = method.code.end;
                let _ = everything(&dex, method);
                let _ = dex.frame(&index, method.code.start);
                if let Ok(table) = dex.lines(method) {
                    let inside = |row: &LineRow| method.code.contains(&row.offset);
                    assert!(table.rows().iter().all(inside));
                    assert!(table.rows().is_sorted_by_key(|row| row.offset));
                    if let Some(problem) = table.problem() {
                        assert!(problem.to_string().contains(" at offset 0x"), "{problem}");
                    }
                }
            }
        }
    }
}

#[test]
fn dalvik_has_opcodes_of_its_own() {
    let mut bytes = fixture("items.dex");
    let dex = DexFile::parse(&bytes).unwrap();
    let steps = method(&dex, "Lines.steps");
    let start = steps.code.start as usize;
    let units: [u16; 19] = [
        0x21f2, 0x0008, // iget-quick
        0x20f8, 0x000b, 0x0021, // invoke-virtual-quick
        0x03fb, 0x000c, 0x0100, // invoke-super-quick/range
        0x02ed, 0x0007, // throw-verification-error
        0x20ee, 0x0003, 0x0010, // execute-inline
        0x00f1, // return-void-barrier
        0x01e5, 0x0000, // sget-volatile
        0x10f0, 0x0000, 0x0003, // invoke-object-init/range
    ];
    for (unit, place) in units.iter().zip(bytes[start..].chunks_exact_mut(2)) {
        place.copy_from_slice(&unit.to_le_bytes());
    }
    let dex = DexFile::parse(&bytes).unwrap();
    let text: Vec<String> = dex
        .disassemble_as(&steps, Dialect::Dalvik)
        .take(8)
        .map(|instruction| instruction.unwrap().to_string())
        .collect();
    assert_eq!(
        text[..6],
        [
            "iget-quick v1, v2, [obj+0008]",
            "invoke-virtual-quick {v1, v2}, [000b] // vtable #000b",
            "invoke-super-quick/range {v256, v257, v258}, [000c] // vtable #000c",
            "throw-verification-error #2, thing@0007",
            "execute-inline {v0, v1}, [0003] // inline #0003",
            "return-void-barrier",
        ]
    );
    assert!(text[6].starts_with("sget-volatile v1, Lorg/example/corpus/"));
    assert!(text[7].starts_with("invoke-object-init/range {v3, v4, v5, v6, v7, v8, v9, v10"));
}
