//! Compares methods, names and code ranges with the output of dexdump.

use crate::common;

use std::path::Path;

use varid_symbolizer::dex::{DexFile, MethodIndex, type_name};
use varid_symbolizer::substitute::{Slot, Substitute};

/// A method as printed by dexdump, or as read by this crate.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    class: String,
    name: String,
    descriptor: String,
    access: u32,
    code: Option<(u32, u32)>,
    source: Option<String>,
}

/// Parses the output of `dexdump -d`. It prints the offset of a method's code_item; the instructions start 16 bytes later.
fn dexdump(text: &str) -> Vec<Row> {
    let quoted = |line: &str| line.split('\'').nth(1).unwrap_or_default().to_owned();
    let value = |line: &str| line.split_once(": ").unwrap_or_default().1.to_owned();
    let mut rows: Vec<Row> = Vec::new();
    let mut class_start = 0;
    let mut class = String::new();
    let mut in_methods = false;
    for line in text.lines() {
        let key = line.trim_start();
        if key.starts_with("Class descriptor") {
            class = quoted(line);
            class_start = rows.len();
        } else if key.starts_with("Direct methods") || key.starts_with("Virtual methods") {
            in_methods = true;
        } else if key.starts_with("Static fields") || key.starts_with("Instance fields") {
            in_methods = false;
        } else if key.starts_with("source_file_idx") {
            let (number, name) = value(line)
                .split_once(' ')
                .map(|(n, s)| (n.to_owned(), s.to_owned()))
                .unwrap();
            for row in &mut rows[class_start..] {
                row.source = (number != "-1").then(|| name[1..name.len() - 1].to_owned());
            }
        } else if !in_methods {
        } else if key.starts_with("name  ") {
            rows.push(Row {
                class: class.clone(),
                name: quoted(line),
                descriptor: String::new(),
                access: 0,
                code: None,
                source: None,
            });
        } else if key.starts_with("type  ") {
            rows.last_mut().unwrap().descriptor = quoted(line);
        } else if key.starts_with("access  ") {
            let hex = value(line);
            let hex = hex
                .split_whitespace()
                .next()
                .unwrap()
                .trim_start_matches("0x");
            rows.last_mut().unwrap().access = u32::from_str_radix(hex, 16).unwrap();
        } else if key.starts_with("insns size") {
            let units: u32 = value(line)
                .split_whitespace()
                .next()
                .unwrap()
                .parse()
                .unwrap();
            rows.last_mut().unwrap().code = Some((0, units * 2));
        } else if let Some((offset, rest)) = line.split_once(':')
            && rest.trim_start().starts_with("|[")
        {
            let start = u32::from_str_radix(offset, 16).unwrap() + 16;
            rows.last_mut().unwrap().code.as_mut().unwrap().0 = start;
        }
    }
    rows
}

fn ours(dex: &DexFile<'_>) -> Vec<Row> {
    dex.methods()
        .map(|method| {
            let method = method.unwrap();
            let signature = method.id.signature().unwrap();
            let (class, rest) = signature.split_once("->").unwrap();
            Row {
                class: class.to_owned(),
                name: method.id.name().unwrap(),
                descriptor: rest[rest.rfind('(').unwrap()..].to_owned(),
                access: method.access_flags,
                code: method
                    .code
                    .as_ref()
                    .map(|code| (code.start, code.end - code.start)),
                source: method.source_file().unwrap(),
            }
        })
        .collect()
}

fn compare(path: &Path) -> usize {
    let bytes = std::fs::read(path).unwrap();
    let dex = DexFile::parse(&bytes).unwrap();
    let ours = ours(&dex);
    let Some(printed) = common::run("dexdump", &["-d", common::text(path)]) else {
        return ours.len();
    };
    let theirs = dexdump(&printed);
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    // The indices by class are the same ones.
    let class = |index: u32| dex.method_id(index).unwrap().class_name().unwrap();
    let classes: Vec<Vec<u32>> = dex.class_methods().collect();
    for methods in &classes {
        let first = methods.first().map(|index| class(*index));
        let is_of_it = |index: &u32| Some(class(*index)) == first;
        assert!(methods.iter().all(is_of_it), "{methods:?}");
    }
    let indices = dex.methods().map(|method| method.unwrap().id.index());
    assert!(indices.eq(classes.concat()));
    // Every byte of a method is found in that method.
    let index = MethodIndex::new(&dex).unwrap();
    for method in dex.methods().map(Result::unwrap) {
        let Some(code) = method.code.clone() else {
            continue;
        };
        for offset in code.clone() {
            assert_eq!(index.lookup(offset).unwrap().code, code);
        }
        for outside in [code.start - 1, code.end] {
            assert_ne!(index.lookup(outside).map(|found| &found.code), Some(&code));
        }
    }
    ours.len()
}

#[test]
fn all_methods_are_those_that_dexdump_prints() {
    let folder = tempfile::tempdir().unwrap();
    for api in [22, 24, 26, 28] {
        assert_eq!(
            compare(&common::assemble(api, folder.path())),
            17,
            "API {api}"
        );
    }
    assert_eq!(compare(&common::fixtures().join("names.dex")), 17);
}

#[test]
fn names_are_those_of_java() {
    let bytes = std::fs::read(common::fixtures().join("names.dex")).unwrap();
    let dex = DexFile::parse(&bytes).unwrap();
    assert!(MethodIndex::new(&dex).unwrap().problem().is_none());
    let mut names: Vec<String> = (0..dex.method_count())
        .map(|index| dex.method_name(index).unwrap())
        .collect();
    names.sort();
    let expected = [
        "Unpackaged.main",
        "java.lang.Object.<init>",
        "org.example.Balls$Inner.<init>",
        "org.example.Balls$Inner.switch",
        "org.example.Balls.<clinit>",
        "org.example.Balls.<init>()",
        "org.example.Balls.<init>(double,double)",
        "org.example.Balls.compareTo(java.lang.Object)",
        "org.example.Balls.compareTo(org.example.Balls)",
        "org.example.Balls.draw()",
        "org.example.Balls.draw(int)",
        "org.example.Balls.draw(java.lang.String,int[])",
        "org.example.Balls.gr\u{fc}n\u{4e16}",
        "org.example.Balls.hashCode",
        "org.example.Balls.helper",
        "org.example.Balls.nativeStep",
        "org.example.Balls.update",
        "org.example.Drawable.draw()",
        "org.example.Drawable.draw(int)",
    ];
    assert_eq!(names, expected);
    let helper = dex
        .methods()
        .map(Result::unwrap)
        .find(|method| method.id.name().unwrap() == "helper")
        .unwrap();
    assert_eq!(
        helper.id.parameter_types().unwrap(),
        [
            "long[][]",
            "java.lang.String",
            "org.example.Balls$Inner",
            "boolean"
        ]
    );
    assert_eq!(helper.id.return_type().unwrap(), "java.lang.String[]");
    assert_eq!(helper.source_file().unwrap().as_deref(), Some("Balls.java"));
    assert_eq!(type_name("[I"), "int[]");
    assert!(dex.method_name(dex.method_count()).is_err());
}

#[test]
fn a_mapping_is_longer_than_its_file() {
    let mut bytes = std::fs::read(common::fixtures().join("names.dex")).unwrap();
    let size = bytes.len();
    bytes.resize(size.next_multiple_of(4096), 0xa5);
    let dex = DexFile::parse(&bytes).unwrap();
    assert_eq!(dex.bytes().len(), size);
    // In an unmodified file, the header's signature is the SHA-1 of the content.
    assert_eq!(dex.content_sha1(), bytes[12..32]);
    bytes[12..32].fill(0);
    let owned = DexFile::from_vec(bytes).unwrap();
    assert_eq!(owned.bytes().len(), size);
    assert_ne!(owned.content_sha1(), [0; 20]);
}

#[test]
fn other_versions_and_formats_are_named() {
    let original = std::fs::read(common::fixtures().join("names.dex")).unwrap();
    let with_magic = |magic: &[u8; 8]| {
        let mut bytes = original.clone();
        bytes[..8].copy_from_slice(magic);
        DexFile::from_vec(bytes)
    };
    assert_eq!(with_magic(b"dex\n040\0").unwrap().version(), 40);
    for (magic, part) in [
        (b"dex\n013\0", "version"),
        (b"dex\n042\0", "version"),
        (b"dey\n036\0", "odex"),
        (b"cdex002\0", "compact"),
        (b"\x7fELF\x02\x01\x01\0", "not a dex"),
    ] {
        let error = with_magic(magic).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let error = DexFile::parse(&original[..original.len() - 1]).unwrap_err();
    assert!(
        error.to_string().contains("file_size at offset 0x20"),
        "{error}"
    );
}

/// A container of two dex files that share everything, made from a plain one. The longer header overwrites the first string ids, so these
/// are copied to the end.
fn container(plain: &[u8]) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(plain[at..at + 4].try_into().unwrap());
    let put = |bytes: &mut Vec<u8>, at: usize, value: usize| {
        bytes[at..at + 4].copy_from_slice(&u32::try_from(value).unwrap().to_le_bytes());
    };
    let mut bytes = plain.to_vec();
    let strings = bytes.len();
    let (count, from) = (word(0x38) as usize, word(0x3c) as usize);
    bytes.extend_from_within(from..from + count * 4);
    let second = bytes.len();
    bytes.extend_from_within(..0x78);
    let size = bytes.len();
    for (header, file_size) in [(0, second), (second, size - second)] {
        bytes[header + 4..header + 7].copy_from_slice(b"041");
        put(&mut bytes, header + 0x20, file_size);
        put(&mut bytes, header + 0x24, 0x78);
        put(&mut bytes, header + 0x3c, strings);
        put(&mut bytes, header + 0x70, size);
        put(&mut bytes, header + 0x74, header);
    }
    bytes
}

#[test]
fn a_container_is_read_header_by_header() {
    let plain = std::fs::read(common::fixtures().join("names.dex")).unwrap();
    let expected = ours(&DexFile::parse(&plain).unwrap());
    let bytes = container(&plain);
    let first = DexFile::parse(&bytes).unwrap();
    assert_eq!(first.version(), 41);
    assert_eq!(ours(&first), expected);
    let second = DexFile::parse_at(&bytes, first.next_header().unwrap()).unwrap();
    assert_eq!(ours(&second), expected);
    assert_eq!(second.next_header(), None);
    assert!(DexFile::parse_at(&plain, 4).is_err());
}

#[test]
fn methods_that_share_their_code_are_one() {
    let mut bytes = std::fs::read(common::fixtures().join("names.dex")).unwrap();
    let dex = DexFile::parse(&bytes).unwrap();
    let before = MethodIndex::new(&dex).unwrap();
    // The second method `compareTo` gets the code of the first: two uleb128 bytes each.
    let starts: Vec<u32> = (0..dex.method_count())
        .filter(|&index| dex.method_id(index).unwrap().name().unwrap() == "compareTo")
        .map(|index| {
            let of = |method: &&varid_symbolizer::dex::MethodCode| method.index == index;
            before.methods().iter().find(of).unwrap().code.start
        })
        .collect();
    let encoded = |start: u32| [(start - 16) as u8 | 0x80, ((start - 16) >> 7) as u8];
    let at = bytes
        .windows(2)
        .position(|window| window == encoded(starts[1]))
        .unwrap();
    bytes[at..at + 2].copy_from_slice(&encoded(starts[0]));
    let dex = DexFile::parse(&bytes).unwrap();
    let after = MethodIndex::new(&dex).unwrap();
    assert_eq!(after.methods().len() + 1, before.methods().len());
    let shared = after.lookup(starts[0]).unwrap();
    assert_eq!(
        dex.method_name(shared.index).unwrap(),
        "org.example.Balls.compareTo(java.lang.Object)"
    );
    // The executed method cannot be determined. The name says so, also in the substitute.
    let name = "org.example.Balls.compareTo(java.lang.Object) and 1 more";
    assert_eq!(shared.others, 1);
    assert_eq!(dex.frame(&after, starts[0]).unwrap().function, name);
    let substitute = Substitute::of_dex(&dex).unwrap();
    let of = |slot: &&Slot| slot.offset == u64::from(starts[0]);
    assert_eq!(substitute.slots().iter().find(of).unwrap().name, name);
    assert_eq!(after.lookup(starts[1]), None);
}

#[test]
fn a_broken_class_does_not_take_the_names_of_the_others() {
    let mut bytes = std::fs::read(common::fixtures().join("names.dex")).unwrap();
    let whole = MethodIndex::new(&DexFile::parse(&bytes).unwrap()).unwrap();
    let class_defs = u32::from_le_bytes(bytes[0x64..0x68].try_into().unwrap()) as usize;
    // The class_data_item of the first class, Unpackaged with its one method, is moved elsewhere.
    bytes[class_defs + 24..class_defs + 28].fill(0xee);
    let index = MethodIndex::new(&DexFile::parse(&bytes).unwrap()).unwrap();
    assert_eq!(index.methods().len() + 1, whole.methods().len());
    let problem = index.problem().unwrap().to_string();
    assert_eq!(
        problem,
        "dex file: static_fields_size at offset 0xeeeeeeee: lies beyond the end of the file"
    );
}
