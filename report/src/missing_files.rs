//! Lists files that would provide more names and lines, and how to get them.

use std::path::{Path, PathBuf};

use varid_recording::{ImageKind, SYMBOLS, is_own_memory};
use varid_symbolizer::hex;

use crate::{
    frames::{FrameTable, ImageId},
    naming::ImageFileState,
    shares::{Share, StackWeights},
    weights::SampleWeight,
};

/// A file that would provide more names or lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingFile {
    /// The recorded path.
    pub file: PathBuf,
    /// The build-id in hexadecimal. Empty if unknown.
    pub build_id: String,
    /// The missing part.
    pub part: MissingPart,
    /// The reason why the file or its debug information could not be read. Empty if there are no details.
    pub why: String,
    /// Samples that have a frame without name or line because of this file.
    pub weight: SampleWeight,
    /// Instructions for getting the file. Each one is a command or a sentence.
    pub fetch: Vec<String>,
}

/// The missing part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissingPart {
    /// The whole file.
    File,
    /// All or some function names.
    Names,
    /// Lines, and names if they are also missing.
    Lines,
}

impl MissingPart {
    /// Its name in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Names => "names",
            Self::Lines => "lines",
        }
    }
}

/// Every library has some functions without a name. They are not reported below this percentage of samples.
const MIN_PERCENT: u64 = 1;

/// Returns the missing files of a profile, sorted by the number of affected samples. `weights` are those of an event's
/// samples, with the sum `all`. `files` is indexed by [`ImageId`]. `with_lines` also reports missing lines.
pub(crate) fn missing_files(
    weights: &StackWeights<'_>,
    all: SampleWeight,
    frames: &FrameTable,
    files: &[Option<ImageFileState>],
    with_lines: bool,
) -> Vec<MissingFile> {
    let has_lines = |id: ImageId| {
        frames.frames().iter().any(|frame| {
            let symbol = frames.symbol(frame.symbol);
            frame.line.is_some() && symbol.is_some_and(|symbol| symbol.image == id)
        })
    };
    let shares = weights.by_frame(|id| {
        let frame = frames.frame(id)?;
        let symbol = frames.symbol(frame.symbol)?;
        let incomplete = !symbol.named || with_lines && frame.line.is_none();
        incomplete.then_some(symbol.image)
    });
    let all = all.samples();
    let of = |(id, share): (ImageId, Share)| {
        let state = files.get(id.index())?.as_ref()?;
        let weight = SampleWeight::from(share.total);
        let notable = weight.samples().saturating_mul(100) >= all.saturating_mul(MIN_PERCENT);
        let part = match &state.problem {
            Some(_) => MissingPart::File,
            None if !notable => return None,
            None if !with_lines => MissingPart::Names,
            // The file has lines. Assembly functions in it may have none.
            None if has_lines(id) => return None,
            None => MissingPart::Lines,
        };
        missing_file(state, part, weight)
    };
    let mut found: Vec<MissingFile> = shares.into_iter().filter_map(of).collect();
    found.sort_by(|one, other| {
        let by_weight = other.weight.samples().cmp(&one.weight.samples());
        by_weight.then_with(|| one.file.cmp(&other.file))
    });
    found
}

/// Describes a missing file. None if the file cannot be obtained.
fn missing_file(
    state: &ImageFileState,
    part: MissingPart,
    weight: SampleWeight,
) -> Option<MissingFile> {
    let image = &state.file;
    // Memory without a file ([heap], //anon) has no names, and the remap range has no lines.
    let path = image.path.as_os_str().as_encoded_bytes();
    let is_file = image.in_session || path.starts_with(b"/") && !path.starts_with(b"//");
    // An ELF file of the session (the vDSO's copy, an imported recording's symbols) is already complete.
    let is_complete =
        image.kind == ImageKind::Remap || image.kind == ImageKind::Elf && image.in_session;
    let is_complete = is_complete || is_substitute(&image.path, &image.build_id);
    if !is_file || is_complete && part != MissingPart::File {
        return None;
    }
    let build_id = hex(&image.build_id);
    let why = state.problem.as_ref().or(state.no_debug.as_ref());
    Some(MissingFile {
        fetch: match image.in_session && part == MissingPart::File {
            true => vec!["copy the whole session from where it was recorded".to_owned()],
            false => fetch(&image.path, &build_id, image.kind, part),
        },
        file: image.path.clone(),
        build_id,
        part,
        why: why.cloned().unwrap_or_default(),
        weight,
    })
}

/// Returns true if varid wrote the file as a substitute of another session. There is no unstripped build of it.
fn is_substitute(path: &Path, build_id: &[u8]) -> bool {
    let is_symbols = |folder: &Path| folder.file_name().is_some_and(|name| name == SYMBOLS);
    let Some(folder) = path.parent() else {
        return false;
    };
    if folder.parent().is_some_and(is_symbols) {
        let id = folder.file_name().and_then(|id| id.to_str());
        return !build_id.is_empty() && id == Some(&hex(build_id));
    }
    // Names in the folder itself. Earlier versions put the substitutes of dex files there.
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let is_build_id = |stem: &str| {
        stem.len() == BUILD_ID_DIGITS && stem.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_named = stem.is_some_and(|stem| {
        let prefixes = ["jit-", "remap", "vdso-"];
        is_build_id(stem) || prefixes.iter().any(|prefix| stem.starts_with(prefix))
    });
    let is_elf = path.extension().is_some_and(|extension| extension == "elf");
    is_named && is_elf && is_symbols(folder)
}

/// Number of hexadecimal digits of build-ids that varid makes.
const BUILD_ID_DIGITS: usize = 40;

/// Mount points of the partitions of an Android device.
const ANDROID: [&str; 8] = [
    "/system",
    "/system_ext",
    "/apex",
    "/vendor",
    "/product",
    "/odm",
    "/data/app",
    "/data/data",
];

/// Folders of distribution packages, whose debug information is on debuginfod servers.
const PACKAGED: [&str; 5] = ["/usr", "/lib", "/lib64", "/bin", "/sbin"];

/// Only for libc, the name of Debian's debug package follows from the file name.
const LIBC: [&str; 5] = [
    "libc.so.6",
    "libm.so.6",
    "libpthread.so.0",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

/// Returns instructions for getting a file or its debug information.
fn fetch(path: &Path, build_id: &str, kind: ImageKind, part: MissingPart) -> Vec<String> {
    let mut ways = Vec::new();
    let shown = shell_word(&path.to_string_lossy());
    // Such memory has a path but no file. The kernel names shmat(2) memory /SYSV.
    if is_own_memory(path) || path.as_os_str().as_encoded_bytes().starts_with(b"/SYSV") {
        return ways;
    }
    if kind != ImageKind::Elf {
        if part == MissingPart::Lines {
            ways.push(
                "compile the app with its line numbers: -keepattributes SourceFile,LineNumberTable for R8"
                    .to_owned(),
            );
        }
        return ways;
    }
    let android = ANDROID.iter().any(|root| path.starts_with(root));
    if part == MissingPart::File {
        ways.push(if android {
            format!("adb pull {shown} DIR; varid report --symbols DIR")
        } else {
            format!("copy {shown} from where it was recorded to DIR; varid report --symbols DIR")
        });
    }
    let packaged = PACKAGED.iter().any(|root| path.starts_with(root));
    if android || !packaged {
        if part != MissingPart::File {
            ways.push(
                "put an unstripped build of this file, with the same build-id, into DIR, and add --symbols DIR"
                    .to_owned(),
            );
        }
        return ways;
    }
    let is_libc = path
        .file_name()
        .is_some_and(|name| LIBC.iter().any(|libc| name == *libc));
    // Cannot install a libc package of another machine here.
    if part != MissingPart::File
        && is_libc
        && path.exists()
        && Path::new("/etc/debian_version").exists()
    {
        ways.push("apt install libc6-dbg".to_owned());
    }
    if !build_id.is_empty() {
        let what = if part == MissingPart::File {
            "executable"
        } else {
            "debuginfo"
        };
        ways.push(format!("debuginfod-find {what} {build_id}"));
    }
    ways
}

/// Quotes a word for sh(1), so that a recorded file name cannot become a command.
#[must_use]
pub fn shell_word(text: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "/._-+,:@%=~".contains(char);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_a_command_is_one_word() {
        let fetch = |path| fetch(Path::new(path), "", ImageKind::Elf, MissingPart::File).remove(0);
        let plain = "adb pull /data/app/~~a==/lib/arm64/libfoo.so DIR; varid report --symbols DIR";
        assert_eq!(fetch("/data/app/~~a==/lib/arm64/libfoo.so"), plain);
        assert_eq!(
            fetch("/data/app/$(reboot); it's a `lib`.so"),
            r"adb pull '/data/app/$(reboot); it'\''s a `lib`.so' DIR; varid report --symbols DIR"
        );
    }

    #[test]
    fn a_file_of_names_has_no_unstripped_build() {
        let id = "0a".repeat(20);
        let of_earlier_version = format!("/srv/session/symbols/{id}.elf");
        let kept = format!("/srv/s/symbols/{}/libc.so.6", "0b".repeat(20));
        for path in [
            &format!("/srv/s/symbols/{id}/math.dex"),
            &of_earlier_version,
            "/srv/s/symbols/jit-12.elf",
            "/s/symbols/remap.elf",
        ] {
            assert!(is_substitute(Path::new(path), &[10; 20]), "{path}");
        }
        for path in [
            "/usr/lib/libc.so.6",
            "/srv/symbols/game.elf",
            "/srv/jit-12.elf",
            &kept,
            &format!("/srv/{id}/math.dex"),
        ] {
            assert!(!is_substitute(Path::new(path), &[10; 20]), "{path}");
        }
    }

    #[test]
    fn memory_without_a_file_is_not_to_be_copied() {
        for path in ["/memfd:jit-cache (deleted)", "/SYSV00000000 (deleted)"] {
            let ways = fetch(Path::new(path), "", ImageKind::Elf, MissingPart::File);
            assert!(ways.is_empty(), "{path}: {ways:?}");
        }
    }
}
