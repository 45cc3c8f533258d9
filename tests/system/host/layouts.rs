//! Tests that the layout derived from a library equals that of the table of builds, and that an inconsistent library is
//! rejected.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use varid_tunnel::abi::{CodeRange, Layout, RANGE_BRIDGE, RANGE_VM, Rule};
use varid_tunnel::builds::{self, Build};
use varid_vm::{LayoutError, LibraryLayout};

/// Debian's name of a machine and of a suite, the first bytes of the build-id, and the number of functions for calls
/// that have neither a symbol nor a call that identifies them. On armhf only assembly has unwind information, and most
/// of that is Thumb code.
const LIBRARIES: [(&str, &str, [u8; 4], usize); 5] = [
    ("amd64", "bookworm", [0xd3, 0xba, 0x28, 0x1c], 5),
    ("arm64", "bookworm", [0x2d, 0xe2, 0x1a, 0x0d], 5),
    ("armhf", "bookworm", [0xe3, 0x83, 0xdc, 0x2a], 24),
    ("amd64", "trixie", [0x61, 0x49, 0x7c, 0x95], 0),
    ("arm64", "trixie", [0x15, 0x2e, 0x5e, 0xef], 0),
];

/// Exit status of packages.sh if a package is not in the cache and cannot be fetched.
const NOT_FETCHED: i32 = 3;
/// A load base.
const BASE: u64 = 0x7f12_3456_7000;
/// The offset according to the dynamic linker.
const TLS_OFFSET: u64 = 0x28;

/// Returns Debian's library. None if it is not there and cannot be fetched.
fn library(arch: &str, suite: &str) -> Result<Option<Vec<u8>>> {
    // An installed library need not be fetched.
    if (arch, suite) == ("amd64", "bookworm") && cfg!(target_arch = "x86_64") {
        return Ok(Some(std::fs::read(varid_tests::Libart::KNOWN)?));
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/board/packages.sh");
    let output = Command::new(script)
        .args([arch, suite, "android-libart"])
        .output()?;
    if output.status.code() == Some(NOT_FETCHED) {
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{script}: {said}");
    let package = String::from_utf8(output.stdout)?;
    let folder = tempfile::tempdir()?;
    let unpacked = Command::new("dpkg-deb")
        .arg("-x")
        .arg(package.trim())
        .arg(folder.path())
        .status()?;
    ensure!(unpacked.success(), "{package}");
    let found = find(&folder.path().join("usr/lib"), "libart.so.0");
    let path = found.with_context(|| format!("no libart.so.0 in {package}"))?;
    Ok(Some(std::fs::read(path)?))
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let mut paths = entries.map(|entry| entry.path());
    paths.find_map(|path| match path.is_dir() {
        true => find(&path, name),
        false => path.ends_with(name).then_some(path),
    })
}

/// Returns the layout of the table, without the unused rules' fields.
fn of_table(build: &Build) -> Result<(Layout, Vec<CodeRange>)> {
    let mut layout = build.layout(BASE, |_| Some(TLS_OFFSET))?;
    let used = layout.rule_count.into();
    layout
        .rules
        .iter_mut()
        .skip(used)
        .for_each(|rule| *rule = Rule::default());
    Ok((layout, build.ranges(BASE)))
}

/// Returns the ranges with a purpose. The other ranges lie between them.
fn without_rest(ranges: &[CodeRange]) -> Vec<CodeRange> {
    let with_purpose = ranges.iter().filter(|range| range.kind != RANGE_VM);
    with_purpose.copied().collect()
}

#[test]
fn each_librarys_layout_is_that_of_the_table() -> Result<()> {
    for (arch, suite, build_id, unnamed) in LIBRARIES {
        let Some(bytes) = library(arch, suite)? else {
            println!("layouts: SKIP {arch} {suite}: the package cannot be fetched");
            continue;
        };
        let build = builds::all().find(|build| build.build_id().starts_with(&build_id));
        let build = build.with_context(|| format!("{arch} {suite}: not in the table"))?;
        let said = LibraryLayout::read(&bytes);
        if arch == "amd64" && cfg!(not(target_arch = "x86_64")) {
            ensure!(said == Err(LayoutError::Machine), "{said:?}");
            continue;
        }
        let said = said.with_context(|| format!("{arch} {suite}"))?;
        let pushes: Vec<_> = build.pushes().collect();
        ensure!(
            said.pushes() == pushes,
            "{arch} {suite}:\n{:x?}\n{pushes:x?}",
            said.pushes()
        );
        let (layout, ranges) = said.loaded_at(BASE, TLS_OFFSET.cast_signed());
        let (of_table, table_ranges) = of_table(build)?;
        ensure!(
            layout == of_table,
            "{arch} {suite}:\n{layout:#?}\n{of_table:#?}"
        );
        let (found, known) = (without_rest(&ranges), without_rest(&table_ranges));
        let missing: Vec<_> = known
            .iter()
            .filter(|range| !found.contains(range))
            .collect();
        let more: Vec<_> = found
            .iter()
            .filter(|range| !known.contains(range))
            .collect();
        println!(
            "{suite} {arch}: all fields as in the table; {} ranges of code, {} of the table's not found, {} more",
            found.len(),
            missing.len(),
            more.len()
        );
        let are_bridges =
            |ranges: &[&CodeRange]| ranges.iter().all(|range| range.kind == RANGE_BRIDGE);
        ensure!(
            are_bridges(&missing) && are_bridges(&more),
            "{missing:x?} {more:x?}"
        );
        ensure!(missing.len() == unnamed, "{arch} {suite}: {missing:x?}");
    }
    Ok(())
}

/// Debian's ART 11 for x86-64: displacements in code, at these offsets of the file.
#[cfg(target_arch = "x86_64")] // Decodes x86-64 code.
mod changed {
    use super::*;
    use varid_symbolizer::elf::ElfSymbols;
    use varid_tests::Libart;

    /// In `Thread::InitTid`: mov %eax, 0x10(%rbx).
    const INIT_TID: usize = 0x68_61d0;
    /// In `ThreadList::Contains(pid_t)`: cmp %esi, 0x10(%rax).
    const CONTAINS: usize = 0x6a_4f96;

    /// In `StackVisitor::GetDexPc`: mov 0x34(%rax), %ebx.
    const DEX_PC: usize = 0x65_d5c5;

    /// Derives the layout with another offset in these places of the code.
    fn with_offset(
        (old, new): (u8, u8),
        places: &[usize],
    ) -> Result<Result<LibraryLayout, LayoutError>> {
        let mut bytes = std::fs::read(Libart::KNOWN)?;
        for place in places {
            ensure!(bytes[*place] == old, "{place:#x}: another build");
            bytes[*place] = new;
        }
        Ok(LibraryLayout::read(&bytes))
    }

    fn with_tid_at(offset: u8, places: &[usize]) -> Result<Result<LibraryLayout, LayoutError>> {
        with_offset((0x10, offset), places)
    }

    #[test]
    fn a_field_beyond_the_bytes_that_are_read_of_a_frame_is_refused() -> Result<()> {
        let last = with_offset((0x34, 0x3c), &[DEX_PC])??;
        let (layout, _) = last.loaded_at(BASE, 8);
        ensure!(layout.rules[0].frame_index == 0x3c, "{layout:?}");
        for offset in [0x40, 0x4c] {
            let said = with_offset((0x34, offset), &[DEX_PC])?;
            ensure!(
                matches!(&said, Err(LayoutError::Unusable(why)) if why.contains("frame_index")),
                "{said:?}"
            );
        }
        Ok(())
    }

    #[test]
    fn a_field_that_two_functions_use_differently_is_refused() -> Result<()> {
        for place in [INIT_TID, CONTAINS] {
            let said = with_tid_at(0x14, &[place])?;
            ensure!(
                matches!(said, Err(LayoutError::Contradiction { .. })),
                "{said:?}"
            );
        }
        Ok(())
    }

    /// Names of two handlers, of mterp and nterp, as in `.gnu_debugdata` of a device's library: section, offset, type.
    const HANDLERS: [&str; 4] = [
        "mterp_op_move=.text:0x659580,local,function",
        "mterp_op_move_from16=.text:0x6595a0,local,function",
        "nterp_op_move=.text:0x661d80,local,function",
        "nterp_op_move_from16=.text:0x661da0,local,function",
    ];

    #[test]
    fn names_of_the_parts_of_an_interpreter_leave_it_whole() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name);
        let objcopy = |arguments: &[&str]| {
            let mut command = Command::new("objcopy");
            varid_tests::printed(command.current_dir(folder.path()).args(arguments)).map(drop)
        };
        std::fs::copy(Libart::KNOWN, path("libart.so.0"))?;
        let names = HANDLERS.iter().flat_map(|name| ["--add-symbol", name]);
        let mut with_names: Vec<&str> = names.collect();
        with_names.extend(["--only-keep-debug", "libart.so.0", "names"]);
        objcopy(&with_names)?;
        varid_tests::printed(Command::new("xz").arg(path("names")))?;
        let section = ".gnu_debugdata=names.xz";
        objcopy(&["--add-section", section, "libart.so.0"])?;
        let named = std::fs::read(path("libart.so.0"))?;
        let symbols = ElfSymbols::from_bytes(&named, "libart")?;
        let handler = symbols.lookup(0x7b_2e80).context("no symbol")?;
        ensure!(handler.raw == "mterp_op_move", "{}", handler.raw);
        let of_debian = LibraryLayout::read(&std::fs::read(Libart::KNOWN)?)?;
        ensure!(LibraryLayout::read(&named)? == of_debian);
        Ok(())
    }

    #[test]
    fn a_build_that_nobody_has_seen_has_the_layout_that_its_code_uses() -> Result<()> {
        let said = with_tid_at(0x14, &[INIT_TID, CONTAINS])??;
        let (layout, _) = said.loaded_at(BASE, 8);
        ensure!(layout.thread_tid == 0x14, "{layout:?}");
        let same = with_tid_at(0x10, &[INIT_TID])??;
        let (of_debian, _) = same.loaded_at(BASE, 8);
        let changed = Layout {
            thread_tid: 0x14,
            ..of_debian
        };
        ensure!(layout == changed, "{layout:?}");
        Ok(())
    }
}
