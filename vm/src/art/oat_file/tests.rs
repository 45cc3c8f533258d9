//! The fixtures are of ART's compilers: tests/fixtures/art11/make.sh, tests/fixtures/art14/make.sh.

use super::methods::CompiledMethod;
use super::*;
use varid_symbolizer::dex::DexFile;

const OAT: &[u8] = include_bytes!("../../../tests/fixtures/art11/code.oat");
const DEX: &[u8] = include_bytes!("../../../tests/fixtures/art11/code.dex");

/// The same methods as ART 14 compiles them.
const OAT_14: &[u8] = include_bytes!("../../../tests/fixtures/art14/code.oat");

/// The compiled methods of a file made from [`DEX`].
fn compiled(oat: &[u8]) -> Result<CompiledMethods, OatError> {
    let dex = DexFile::parse(DEX).unwrap();
    let oat = OatFile::parse(oat)?;
    Ok(oat.compiled_methods(|_| Some(dex.class_methods())))
}

/// The file with other bytes at some offset.
fn with(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut oat = OAT.to_vec();
    oat[offset..][..bytes.len()].copy_from_slice(bytes);
    oat
}

/// The file of ART 14 with other bytes at some offset.
fn with_14(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut oat = OAT_14.to_vec();
    oat[offset..][..bytes.len()].copy_from_slice(bytes);
    oat
}

fn word_14(offset: usize) -> usize {
    u32::from_le_bytes(*OAT_14[offset..].first_chunk().unwrap()) as usize
}

fn names(methods: &[CompiledMethod]) -> Vec<String> {
    let dex = DexFile::parse(DEX).unwrap();
    let name = |method: &CompiledMethod| dex.method_id(method.index).unwrap().name().unwrap();
    methods.iter().map(name).collect()
}

#[test]
fn an_offset_has_all_methods_that_share_its_code() {
    let compiled = compiled(OAT).unwrap();
    assert_eq!(compiled.refused, 0);
    let found: Vec<_> = compiled
        .iter()
        .map(|(code, methods)| (code.start, code.size, names(methods).join(" ")))
        .collect();
    let expected = [
        (0x1010, 0x1, "<init>"),
        (0x1020, 0x62, "catching"),
        (0x1090, 0x3f, "charAt"),
        (0x10e0, 0x4c, "difference"),
        (0x1140, 0x2b, "element"),
        (0x1180, 0xf7, "outer"),
        (0x1280, 0x4c, "twice"),
        (0x12e0, 0x4b, "first second"),
    ];
    assert_eq!(
        found,
        expected.map(|(start, size, names)| (start, size, names.to_owned()))
    );
    for (start, size, expected) in expected {
        let names_at = |offset| compiled.at(offset).map(|(_, of)| names(of).join(" "));
        assert_eq!(names_at(start).as_deref(), Some(expected));
        assert_eq!(names_at(start + size - 1).as_deref(), Some(expected));
        // Before the code is its header, behind it nothing.
        assert_eq!(names_at(start - 1), None);
        assert_eq!(names_at(start + size), None);
    }
}

#[test]
fn code_leads_to_its_code_info() {
    let oat = OatFile::parse(OAT).unwrap();
    let compiled = compiled(OAT).unwrap();
    let registers: Vec<_> = compiled
        .iter()
        .map(|(code, _)| oat.code_info(code).unwrap().dex_registers)
        .collect();
    // As .registers in Code.smali says.
    assert_eq!(registers, [1, 3, 3, 5, 3, 4, 4, 3]);
}

#[test]
fn the_header_says_what_was_compiled() {
    let oat = OatFile::parse(OAT).unwrap();
    assert_eq!(oat.machine, Machine::X86_64);
    assert_eq!(oat.executable_offset, 0x1000);
    let [dex_file] = &oat.dex_files[..] else {
        panic!("{:?}", oat.dex_files);
    };
    assert_eq!(dex_file.location, "/tmp/art11-fixture/app/code.dex");
    // Adler-32 as in the dex file's header.
    assert_eq!(dex_file.checksum.to_le_bytes(), DEX[8..12]);
    assert_eq!(dex_file.vdex_offset, Some(48));
}

#[test]
fn another_version_is_named() {
    let version = |oat: &[u8]| OatFile::parse(oat).unwrap_err();
    assert_eq!(
        version(&with(4, b"225\0")),
        OatError::Version("225".to_owned())
    );
    assert_eq!(version(&with(0, b"\x7fELF")), OatError::Magic(*b"\x7fELF"));
    assert_eq!(version(&with(12, &[9])), OatError::InstructionSet(9));
}

#[test]
fn what_is_broken_is_an_error_or_refused() {
    for length in 0..0x330 {
        let cut = OatFile::parse(&OAT[..length]);
        assert!(cut.is_err() || length > 0x310, "{length:#x}");
    }
    // The type of the first class, which is at 0x338.
    let broken = compiled(&with(0x33a, &[3])).unwrap();
    let expected = OatError::ClassType {
        offset: 0x338,
        kind: 3,
    };
    assert_eq!(broken.unreadable, [(0, expected)]);
    assert_eq!(broken.iter().count(), 0);
    // The size of the last method's code is beyond the file's end: it is shared by two.
    let refused = compiled(&with(0x12de, &[1])).unwrap();
    assert_eq!((refused.refused, refused.iter().count()), (2, 7));
    // Without the code nothing is known of it.
    let refused = compiled(&OAT[..0x1000]).unwrap();
    assert_eq!((refused.refused, refused.iter().count()), (9, 0));
}

#[test]
fn before_the_executable_part_there_is_no_code() {
    let refused = compiled(&with(28, &0x1100u32.to_le_bytes())).unwrap();
    assert_eq!((refused.refused, refused.iter().count()), (4, 4));
}

#[test]
fn the_bit_of_thumb_is_no_part_of_where_code_starts() {
    // The entry point of the first method.
    let mut oat = with(0x344, &0x1011u32.to_le_bytes());
    assert_eq!(compiled(&oat).unwrap().refused, 1);
    oat[12] = 1;
    let compiled = compiled(&oat).unwrap();
    assert_eq!(compiled.refused, 0);
    let first = compiled.iter().next().map(|(code, _)| code.start);
    assert_eq!(first, Some(0x1010));
}

#[test]
fn a_dex_file_that_was_not_copied_has_no_offset() {
    let dex_files = usize::from(OAT[24]) + (usize::from(OAT[25]) << 8);
    let offset = dex_files + 4 + "/tmp/art11-fixture/app/code.dex".len() + 4;
    assert_eq!(OAT[offset..][..4], 48u32.to_le_bytes());
    let oat = with(offset, &[0]);
    let oat = OatFile::parse(&oat).unwrap();
    assert_eq!(oat.dex_files[0].vdex_offset, None);
}

#[test]
fn a_dex_file_that_is_missing_leaves_its_methods_unknown() {
    let oat = OatFile::parse(OAT).unwrap();
    let none = oat.compiled_methods(|_| None::<std::vec::IntoIter<Vec<u32>>>);
    assert_eq!(none.iter().count(), 0);
}

#[test]
fn a_dex_file_that_is_broken_leaves_the_others() {
    let dex = DexFile::parse(DEX).unwrap();
    let mut oat = OatFile::parse(OAT).unwrap();
    let mut broken = oat.dex_files[0].clone();
    broken.class_offsets = u32::MAX - 8;
    oat.dex_files.insert(0, broken);
    let compiled = oat.compiled_methods(|_| Some(dex.class_methods()));
    assert_eq!(compiled.iter().count(), 8);
    assert!(matches!(
        compiled.unreadable[..],
        [(0, OatError::CutShort { .. })]
    ));
    // A list that goes on behind the file's end.
    let listed = with(20, &u32::MAX.to_le_bytes());
    let listed = OatFile::parse(&listed).unwrap();
    assert_eq!(
        listed.dex_files[0],
        OatFile::parse(OAT).unwrap().dex_files[0]
    );
}

#[test]
fn dex_files_with_the_same_tables_are_read_until_there_are_too_many_methods() {
    let dex = DexFile::parse(DEX).unwrap();
    let mut oat = OatFile::parse(OAT).unwrap();
    let same = oat.dex_files[0].clone();
    oat.dex_files.extend(vec![same; 5000]);
    let mut read = 0;
    let compiled = oat.compiled_methods(|_| {
        read += 1;
        Some(dex.class_methods())
    });
    let [(number, OatError::TooManyMethods)] = compiled.unreadable[..] else {
        panic!("{:?}", compiled.unreadable.len());
    };
    assert_eq!(read, number + 1);
    // Those before it stay.
    assert_eq!(compiled.iter().count(), 8);
}

#[test]
fn a_list_of_too_many_dex_files_is_cut() {
    let at = u32::from_le_bytes(*OAT[24..].first_chunk().unwrap()) as usize;
    let mut oat = with(20, &u32::MAX.to_le_bytes());
    // Nine words each, of which the first is the length of a location: none has one.
    oat.truncate(at);
    oat.resize(at + 2 * MAX_DEX_FILES as usize * 36, 0);
    let dex_files = OatFile::parse(&oat).unwrap().dex_files.len();
    assert_eq!(dex_files, MAX_DEX_FILES as usize);
}

#[test]
fn a_file_of_art_14_has_the_same_methods() {
    let oat = OatFile::parse(OAT_14).unwrap();
    assert_eq!(oat.machine, Machine::X86_64);
    assert_eq!(oat.executable_offset, 0x1000);
    let [dex_file] = &oat.dex_files[..] else {
        panic!("{:?}", oat.dex_files);
    };
    assert_eq!(dex_file.location, "/tmp/art14-fixture/app/code.dex");
    assert_eq!(dex_file.checksum.to_le_bytes(), DEX[8..12]);
    let boot: Vec<_> = oat.boot_class_path().collect();
    assert_eq!(boot, ["/tmp/art14-fixture/release/boot.dex"]);
    let found = compiled(OAT_14).unwrap();
    assert_eq!((found.refused, &found.unreadable[..]), (0, &[][..]));
    let registers = |(code, methods)| {
        let info = oat.code_info(code).unwrap();
        assert_eq!(info.code_size, Some(code.size));
        (names(methods).join(" "), info.dex_registers)
    };
    let mut of_14: Vec<_> = found.iter().map(registers).collect();
    of_14.sort();
    let of_11 = [
        ("<init>", 1),
        ("catching", 3),
        ("charAt", 3),
        ("difference", 5),
        ("element", 3),
        ("first second", 3),
        ("outer", 4),
        ("twice", 4),
    ];
    assert_eq!(of_14, of_11.map(|(name, number)| (name.to_owned(), number)));
    for (code, _) in found.iter() {
        assert_eq!(found.at(code.start).unwrap().0, code);
        assert_eq!(found.at(code.start + code.size - 1).unwrap().0, code);
        assert!(found.at(code.start - 1).is_none());
    }
}

#[test]
fn a_class_of_art_14_has_the_number_of_its_methods() {
    let dex_files = word_14(24);
    let location = word_14(dex_files);
    // Behind the location are a checksum and where the dex file is.
    let class_offsets = word_14(dex_files + 4 + location + 8);
    let class = word_14(class_offsets);
    let kind = OAT_14[class + 2];
    assert_eq!(kind, 1, "some are compiled");
    let broken = compiled(&with_14(class + 4, &u32::MAX.to_le_bytes())).unwrap();
    let at = |offset: usize| u32::try_from(offset).unwrap();
    let expected = OatError::CutShort {
        field: "method_bitmap",
        offset: at(class + 8),
    };
    assert_eq!(broken.unreadable, [(0, expected)]);
    // Without a method's code nothing says how much it is.
    let before = compiled(OAT_14).unwrap();
    let (first, _) = before.iter().next().unwrap();
    let cut = &OAT_14[..first.start as usize + 1];
    let cut = compiled(cut).unwrap();
    assert_eq!(cut.iter().count(), usize::from(first.size == 1));
}

#[test]
fn a_store_without_an_end_names_nothing() {
    let oat = with_14(64, &u32::MAX.to_le_bytes());
    let oat = OatFile::parse(&oat).unwrap();
    assert_eq!(oat.boot_class_path().count(), 0);
}
