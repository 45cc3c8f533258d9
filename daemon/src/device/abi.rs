//! Finds the program that runs on the device: the static one for its ABI.

use super::adb::Device;
use super::error::{DeviceError, Result};
use std::path::{Path, PathBuf};

/// The environment variable for a folder with `ARCH/varid`.
pub const BINARIES: &str = "VARID_DEVICE_BINARIES";

/// The folders of a build tree, relative to that of the host's program.
const BUILT: [&str; 2] = ["../board", "../cross"];

/// A processor architecture that varid is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arch {
    /// The name of its folder.
    name: &'static str,
    /// Debian's name for it, which the build uses.
    debian: &'static str,
    object: object::Architecture,
}

const ARM64: Arch = Arch {
    name: "arm64",
    debian: "arm64",
    object: object::Architecture::Aarch64,
};
const ARMHF: Arch = Arch {
    name: "armhf",
    debian: "armhf",
    object: object::Architecture::Arm,
};
const X86_64: Arch = Arch {
    name: "x86_64",
    debian: "amd64",
    object: object::Architecture::X86_64,
};

/// A program for a device.
#[derive(Debug)]
pub struct Binary {
    /// The file.
    pub path: PathBuf,
    /// SHA-1 of its content in hexadecimal digits, so that the same program is not pushed twice.
    pub hash: String,
    /// Size in bytes.
    pub size: u64,
}

/// The device's own word for its processor: Android's list of ABIs, best first; one ABI before
/// Android 5; the kernel's where there are no properties.
const QUESTION: &str =
    "getprop ro.product.cpu.abilist 2>/dev/null; getprop ro.product.cpu.abi 2>/dev/null; uname -m";

/// Returns the program for a device.
pub fn binary_for(device: &Device) -> Result<Binary> {
    let answer = device.ask(QUESTION)?;
    let Some(arch) = arch(&answer.out) else {
        return Err(DeviceError::Abi {
            serial: device.serial.clone(),
            abi: answer.out.trim().replace('\n', ", "),
        });
    };
    let binary = find(arch, &folders())?;
    let program = std::env::current_exe().unwrap_or_default();
    if is_stale(&binary.path, &program) {
        tracing::warn!(
            "{} is older than {}: 'make cross ARCH={}' builds it anew",
            binary.path.display(),
            program.display(),
            arch.debian
        );
    }
    Ok(binary)
}

/// Returns true if it is of the same build tree and older than the host's program. Elsewhere, times are those of unpacking or
/// installing.
fn is_stale(binary: &Path, program: &Path) -> bool {
    let built = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    let trees = program
        .parent()
        .map(|folder| BUILT.map(|tree| folder.join(tree)));
    let of_tree = trees.is_some_and(|trees| trees.iter().any(|tree| binary.starts_with(tree)));
    of_tree && built(binary) < built(program)
}

/// Returns the first known word of the answer. The list starts with the preferred ABI.
fn arch(answer: &str) -> Option<Arch> {
    let mut words = answer.split([',', '\n']).map(str::trim);
    words.find_map(|word| match word {
        "arm64-v8a" | "aarch64" => Some(ARM64),
        "armeabi-v7a" | "armv7l" | "armv8l" => Some(ARMHF),
        "x86_64" => Some(X86_64),
        _ => None,
    })
}

/// Returns the folders that may contain `ARCH/varid`: the configured one, that of an installation, that of a build.
fn folders() -> Vec<PathBuf> {
    let configured = std::env::var_os(BINARIES).map(PathBuf::from);
    let program = std::env::current_exe().unwrap_or_default();
    let beside = program.parent().map(Path::to_owned).unwrap_or_default();
    configured
        .into_iter()
        .chain(
            ["device", "../lib/varid"]
                .iter()
                .chain(&BUILT)
                .map(|below| beside.join(below)),
        )
        .collect()
}

fn find(arch: Arch, places: &[PathBuf]) -> Result<Binary> {
    let mut names = vec![arch.name, arch.debian];
    names.dedup();
    let below = |place: &PathBuf| {
        names
            .iter()
            .map(|name| place.join(name).join("varid"))
            .collect::<Vec<_>>()
    };
    let candidates: Vec<PathBuf> = places.iter().flat_map(below).collect();
    let Some(path) = candidates.iter().find(|path| path.is_file()) else {
        let looked: Vec<String> = candidates
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        return Err(DeviceError::NoBinary {
            arch: arch.debian,
            looked: looked.join(", "),
        });
    };
    let bytes = std::fs::read(path).map_err(DeviceError::io("read", path))?;
    let wrong = |reason: String| DeviceError::WrongBinary {
        path: path.clone(),
        arch: arch.name,
        reason,
    };
    let kind = object::FileKind::parse(&*bytes).map_err(|error| wrong(error.to_string()))?;
    let file = varid_symbolizer::parse_elf(&*bytes).map_err(|error| wrong(error.to_string()))?;
    let found = object::Object::architecture(&file);
    if found != arch.object || !matches!(kind, object::FileKind::Elf32 | object::FileKind::Elf64) {
        return Err(wrong(format!("it is {kind:?} for {found:?}")));
    }
    Ok(Binary {
        hash: varid_symbolizer::hex(&sha1_smol::Sha1::from(&bytes).digest().bytes()),
        size: bytes.len() as u64,
        path: path.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_abi_that_there_is_a_varid_for() {
        for (answer, expected) in [
            (
                "arm64-v8a,armeabi-v7a,armeabi\narm64-v8a\naarch64\n",
                Some(ARM64),
            ),
            // A 32-bit system on a 64-bit kernel.
            ("armeabi-v7a,armeabi\narmeabi-v7a\naarch64\n", Some(ARMHF)),
            ("\narmeabi-v7a\narmv7l\n", Some(ARMHF)),
            // A board, which has no properties.
            ("aarch64\n", Some(ARM64)),
            ("armv7l\n", Some(ARMHF)),
            ("x86_64,x86,arm64-v8a\nx86_64\nx86_64\n", Some(X86_64)),
            ("x86\nx86\ni686\n", None),
            ("mips\nmips\nmips\n", None),
        ] {
            assert_eq!(arch(answer), expected, "{answer}");
        }
    }

    #[test]
    fn a_program_that_was_built_before_is_stale_in_its_build_tree_alone() {
        let folder = tempfile::tempdir().unwrap();
        let release = folder.path().join("release");
        let program = release.join("varid");
        let built = release.join(BUILT[0]).join("arm64/varid");
        let installed = release.join("device/arm64/varid");
        let early = std::time::SystemTime::UNIX_EPOCH;
        for (file, time) in [(&program, 2), (&built, 1), (&installed, 1)] {
            std::fs::create_dir_all(&release).unwrap();
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            let time = early + std::time::Duration::from_secs(time);
            let file = std::fs::File::create(file).unwrap();
            file.set_modified(time).unwrap();
        }
        assert!(is_stale(&built, &program));
        assert!(!is_stale(&installed, &program));
        std::fs::File::options()
            .write(true)
            .open(&built)
            .unwrap()
            .set_modified(early + std::time::Duration::from_secs(3))
            .unwrap();
        assert!(!is_stale(&built, &program));
    }

    #[test]
    fn a_program_for_another_processor_is_not_pushed() {
        let folder = tempfile::tempdir().unwrap();
        let place = [folder.path().to_owned()];
        let missing = find(ARM64, &place).unwrap_err().to_string();
        assert!(
            missing.contains("arm64/varid") && missing.contains("ARCH=arm64"),
            "{missing}"
        );
        let own = std::fs::read("/proc/self/exe").unwrap();
        for arch in [ARM64, ARMHF, X86_64] {
            let path = folder.path().join(arch.name);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("varid"), &own).unwrap();
        }
        let fitting = [ARM64, ARMHF, X86_64].map(|arch| find(arch, &place).is_ok());
        assert_eq!(fitting.iter().filter(|fits| **fits).count(), 1);
        std::fs::write(folder.path().join("arm64/varid"), "#!/bin/sh\n").unwrap();
        assert!(matches!(
            find(ARM64, &place),
            Err(DeviceError::WrongBinary { .. })
        ));
    }
}
