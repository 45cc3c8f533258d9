//! Tests that everything that is read from dex files matches dexdump.

mod compare;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use compare::{Compared, compare};
use varid_symbolizer::dex::{DexFile, MethodCode, MethodIndex};
use varid_tests::{
    Scale, assembled_dex_files, dex_files, fetched_dex_files, printed, scale, testbed,
};

/// Compares files, and returns what was compared.
fn compare_all(paths: &[PathBuf]) -> Result<Compared> {
    let mut all = Compared::default();
    for path in paths {
        let compared = compare(path)?;
        all.methods += compared.methods;
        all.instructions += compared.instructions;
        all.rows += compared.rows;
        all.tries += compared.tries;
        all.parameters += compared.parameters;
        all.beyond += compared.beyond;
    }
    println!("{} files: {all:?}", paths.len());
    Ok(all)
}

#[test]
fn the_testbed_reads_as_dexdump_prints_it() -> Result<()> {
    let testbed = testbed()?;
    let mut files = dex_files(&testbed.workloads)?;
    files.push(testbed.boot_dex());
    let compared = compare_all(&files)?;
    ensure!(
        compared.methods > 1000 && compared.rows > 3000,
        "{compared:?}"
    );
    Ok(())
}

/// Lines as in the recording, which are those of the smali source.
#[test]
fn a_line_of_an_unknown_file_is_its_class_s() -> Result<()> {
    let testbed = testbed()?;
    let odd = testbed.workloads.join("odd.dex");
    let list = printed(testbed.varid().arg("symbols").arg(&odd))?;
    let of_it = |line: &&str| line.contains("NoPackage.a(long)");
    let listed = list.lines().find(of_it).context("no such method")?;
    ensure!(listed.contains(" NoPackage:41 "), "{listed}");
    let address = listed.split_whitespace().next().context("no address")?;
    let at = ["--at", address];
    let found = printed(testbed.varid().arg("symbols").arg(&odd).args(at))?;
    ensure!(
        found.ends_with(": NoPackage.a(long) at NoPackage:41\n"),
        "{found}"
    );
    Ok(())
}

#[test]
fn what_compilers_seldom_write_reads_as_dexdump_prints_it() -> Result<()> {
    let files = assembled_dex_files()?;
    ensure!(files.len() == 4, "{files:?}");
    let compared = compare_all(&files)?;
    ensure!(
        compared.instructions > 4 * 78_000 && compared.tries == 4 * 8,
        "{compared:?}"
    );
    Ok(())
}

#[test]
fn what_d8_makes_of_apps_reads_as_dexdump_prints_it() -> Result<()> {
    let Some(files) = fetched_dex_files()? else {
        return Ok(());
    };
    let (count, methods, rows) = match scale() {
        Scale::Gate => (26, 3000, 10_000),
        Scale::Long => (29, 113_000, 386_000),
    };
    ensure!(files.len() == count, "{files:?}");
    let compared = compare_all(&files)?;
    ensure!(
        compared.methods > methods && compared.rows > rows,
        "{compared:?}"
    );
    Ok(())
}

/// varid's tests write the compact files, and ART's reader is the ground truth for their content.
#[test]
fn compact_dex_files_read_as_dexdump_prints_them() -> Result<()> {
    let Some(mut files) = fetched_dex_files()? else {
        return Ok(());
    };
    files.extend(assembled_dex_files()?);
    let mut chosen = vec!["corpus-035.dex", "corpus-039.dex"];
    // The long scale includes the larger files.
    if scale() == Scale::Long {
        chosen.push("settings_apk-debug/classes.dex");
    }
    files.retain(|file| chosen.iter().any(|chosen| file.ends_with(chosen)));
    ensure!(files.len() == chosen.len(), "{files:?}");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/compact.py");
    let folder = tempfile::tempdir()?;
    for (number, file) in files.iter().enumerate() {
        let compact = folder.path().join("compact.dex");
        // Their data sections begin immediately, or at the offset of other files' data.
        let status = Command::new(&script)
            .arg(file)
            .arg(&compact)
            .args(["--section", &(number * 0x1234).to_string()])
            .status()?;
        ensure!(status.success(), "{}", script.display());
        let (of_compact, of_standard) = (compare(&compact)?, compare(file)?);
        println!("{}: {of_compact:?}", file.display());
        ensure!(
            format!("{of_compact:?}") == format!("{of_standard:?}"),
            "{of_standard:?}"
        );
    }
    Ok(())
}

/// Every opcode with any operands, including those of quickened code. They overwrite the space in the corpus that is
/// reserved for them.
#[test]
fn every_opcode_with_any_operands_reads_as_dexdump_prints_it() -> Result<()> {
    let files = assembled_dex_files()?;
    let original = files.iter().find(|file| file.ends_with("corpus-039.dex"));
    let original = std::fs::read(original.context("corpus-039.dex")?)?;
    let dex = DexFile::parse(&original)?;
    let room = MethodIndex::new(&dex)?;
    let is_room = |method: &&MethodCode| {
        let name = dex.method_name(method.index);
        name.is_ok_and(|name| name == "org.example.corpus.Far.room")
    };
    let room = room.methods().iter().find(is_room).context("no room")?;
    let room = room.code.start as usize..room.code.end as usize;
    let folder = tempfile::tempdir()?;
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u16
    };
    for turn in 0..8 {
        let mut bytes = original.clone();
        for (index, unit) in bytes[room.clone()].chunks_exact_mut(2).enumerate() {
            // Any unit may be an instruction. Small numbers are valid indices.
            let value = match (index % 4, turn % 2) {
                (0, _) => (index as u16 / 4) & 0xff | (random() & 0xff00),
                (_, 0) => random() % 64,
                _ => random(),
            };
            // Excludes tables, which would exceed the space, and longer lists of registers than the format allows.
            let value = match value & 0xff {
                0x00 => 0,
                0x24 | 0x6e..=0x72 | 0xe9 | 0xfa | 0xfc => value & 0x4fff,
                _ => value,
            };
            unit.copy_from_slice(&value.to_le_bytes());
        }
        bytes[room.end - 10..room.end].fill(0);
        let path = folder.path().join("any.dex");
        std::fs::write(&path, bytes)?;
        compare(&path)?;
    }
    Ok(())
}

/// R8 lets methods share the debug information of the longest of them, with a row for each code unit. For a shorter
/// method dexdump prints rows without an instruction. Only those rows are left out.
#[test]
fn rows_beyond_a_method_are_all_that_is_left_out() -> Result<()> {
    let files = assembled_dex_files()?;
    let mut bytes = std::fs::read(files.first().context("no files")?)?;
    let dex = DexFile::parse(&bytes)?;
    let index = MethodIndex::new(&dex)?;
    let starts: Vec<usize> = index
        .methods()
        .iter()
        .map(|method| method.code.start as usize)
        .collect();
    let shared = u32::try_from(bytes.len())?;
    // The first line is 1, no parameters, a row at 0, then one more line for each unit.
    bytes.extend([1, 0, 0x0e]);
    bytes.extend([0x1e; 300]);
    bytes.push(0);
    let size = u32::try_from(bytes.len())?;
    bytes[0x20..0x24].copy_from_slice(&size.to_le_bytes());
    for start in starts {
        bytes[start - 8..start - 4].copy_from_slice(&shared.to_le_bytes());
    }
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("shared.dex");
    std::fs::write(&path, bytes)?;
    let compared = compare(&path)?;
    let methods = MethodIndex::new(&DexFile::parse(&std::fs::read(&path)?)?)?
        .methods()
        .len();
    ensure!(
        compared.rows + compared.beyond == methods * 301,
        "{compared:?}"
    );
    ensure!(compared.beyond > 1_000, "{compared:?}");
    Ok(())
}
