//! Which files would give more names and lines, and how are they obtained?

use std::path::{Path, PathBuf};

use varid_recording::{ImageKind, SYMBOLS, is_own_memory};
use varid_symbolizer::hex;

use crate::{
    frames::{FrameTable, ImageId},
    naming::ImageFileState,
    shares::{Share, StackWeights},
    weights::SampleWeight,
};

/// A file that would give more names or lines if it were there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingFile {
    /// Where it was when it was recorded.
    pub file: PathBuf,
    /// Its build-id in hexadecimal; empty if it is not known.
    pub build_id: String,
    /// What is missing.
    pub part: MissingPart,
    /// Why the file, or its debug information, could not be read; empty if there is no more to
    /// say than that.
    pub why: String,
    /// Samples that have a frame without name or line for that reason.
    pub weight: SampleWeight,
    /// How to get it, each a command or a sentence.
    pub fetch: Vec<String>,
}

/// What is missing of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissingPart {
    /// All of it.
    File,
    /// The names of its functions, or of some.
    Names,
    /// Lines, and names if those are missing, too.
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

/// A library always has some function without a name: below this many percent of the samples
/// it is not worth reporting.
const MIN_PERCENT: u64 = 1;

/// What is missing of the files of a profile, that which most samples miss first. `weights` are of an event's samples, of
/// which `all` is the sum; `files` is by
/// [`ImageId`]; `with_lines`: lines are missed, too.
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
        let state = files.get(usize::try_from(id.0).ok()?)?.as_ref()?;
        let weight = SampleWeight::from(share.total);
        let notable = weight.samples().saturating_mul(100) >= all.saturating_mul(MIN_PERCENT);
        let part = match &state.problem {
            Some(_) => MissingPart::File,
            None if !notable => return None,
            None if !with_lines => MissingPart::Names,
            // Assembly has none where the rest has.
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

/// What to say of a file; none if nobody could have it.
fn missing_file(
    state: &ImageFileState,
    part: MissingPart,
    weight: SampleWeight,
) -> Option<MissingFile> {
    let image = &state.file;
    // Memory that is no file ([heap], //anon) has no names to miss, the remap range no lines.
    let path = image.path.as_os_str().as_encoded_bytes();
    let is_file = image.in_session || path.starts_with(b"/") && !path.starts_with(b"//");
    // Nor has what the session keeps of an ELF file (the vDSO's copy, an imported recording's symbols) more than it holds.
    let is_complete =
        image.kind == ImageKind::Remap || image.kind == ImageKind::Elf && image.in_session;
    let is_complete = is_complete || is_substitute(&image.path);
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

/// Whether a file is one that varid has written for names alone, of another session: nobody has an unstripped build of it.
fn is_substitute(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let is_build_id = |stem: &str| {
        stem.len() == BUILD_ID_DIGITS && stem.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_named = stem.is_some_and(|stem| {
        let prefixes = ["jit-", "remap", "vdso-"];
        is_build_id(stem) || prefixes.iter().any(|prefix| stem.starts_with(prefix))
    });
    let folder = path.parent().and_then(Path::file_name);
    let is_elf = path.extension().is_some_and(|extension| extension == "elf");
    is_named && is_elf && folder.is_some_and(|folder| folder == SYMBOLS)
}

/// Hexadecimal digits of the build-ids that varid makes.
const BUILD_ID_DIGITS: usize = 40;

/// Where the partitions of an Android device are mounted.
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

/// Where distributions install files whose debug information their debuginfod servers have.
const PACKAGED: [&str; 5] = ["/usr", "/lib", "/lib64", "/bin", "/sbin"];

/// Of Debian's packages with debug information only libc's has a name that follows from the file's.
const LIBC: [&str; 5] = [
    "libc.so.6",
    "libm.so.6",
    "libpthread.so.0",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

/// How to get a file, or its debug information.
fn fetch(path: &Path, build_id: &str, kind: ImageKind, part: MissingPart) -> Vec<String> {
    let mut ways = Vec::new();
    let shown = shell_word(&path.to_string_lossy());
    // Such memory has a path and is no file; the kernel names that of shmat(2) /SYSV.
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
    // A package of another machine's libc cannot be installed here.
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

/// A word as sh(1) reads it back: the name of a recorded file must not become a command.
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
        let substitute = format!("/srv/session/symbols/{}.elf", "0a".repeat(20));
        for path in [
            &substitute,
            "/srv/s/symbols/jit-12.elf",
            "/s/symbols/remap.elf",
        ] {
            assert!(is_substitute(Path::new(path)), "{path}");
        }
        for path in [
            "/usr/lib/libc.so.6",
            "/srv/symbols/game.elf",
            "/srv/jit-12.elf",
        ] {
            assert!(!is_substitute(Path::new(path)), "{path}");
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
