//! What would give more names and lines, and where is it to be had?

use std::path::{Path, PathBuf};

use varid_recording::{ImageKind, is_own_memory};
use varid_symbolizer::hex;

use crate::{
    image::FileState,
    place::{Place, Symbol, SymbolId},
    tables::ImageId,
    tree::{CallTree, Key, Share, Weight},
};

/// A file that would give more names or lines if it were there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Where it was when it was recorded.
    pub file: PathBuf,
    /// Its build-id in hexadecimal; empty if it is not known.
    pub build_id: String,
    /// What is missing.
    pub lack: Lack,
    /// Why the file, or its debug information, could not be read; empty if there is no more to
    /// say than that.
    pub why: String,
    /// Samples that have a frame without name or line for that reason.
    pub weight: Weight,
    /// How to get it, each a command or a sentence.
    pub fetch: Vec<String>,
}

/// What is missing of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lack {
    /// All of it.
    File,
    /// The names of its functions, or of some.
    Names,
    /// Lines, and names if those are missing, too.
    Lines,
}

impl Lack {
    /// Its name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Names => "names",
            Self::Lines => "lines",
        }
    }
}

/// A library always has some function without a name: below this many percent of the samples
/// it is not worth anybody's while.
const MIN_PERCENT: u64 = 1;

/// What is missing of the files of a profile, that which most samples miss first. The tables are those of the profile,
/// `files` is by [`ImageId`]; `with_lines`: lines are missed, too.
pub(crate) fn missing(
    tree: &CallTree,
    symbols: &[Symbol],
    places: &[Place],
    files: &[Option<FileState>],
    with_lines: bool,
) -> Vec<Missing> {
    let symbol = |id: SymbolId| symbols.get(usize::try_from(id.0).ok()?);
    let known = |id: &ImageId| {
        let of_it = |place: &&Place| symbol(place.symbol).is_some_and(|symbol| symbol.image == *id);
        let mut places = places.iter().filter(of_it);
        places.any(|place| place.location.is_some())
    };
    let shares = tree.shares(|key| {
        let Key::Place(id) = key else { return None };
        let place = places.get(usize::try_from(id.0).ok()?)?;
        let symbol = symbol(place.symbol)?;
        let lacks = !symbol.named || with_lines && place.location.is_none();
        lacks.then_some(symbol.image)
    });
    let all = tree.weight().samples;
    let of = |(id, share): (ImageId, Share)| {
        let state = files.get(usize::try_from(id.0).ok()?)?.as_ref()?;
        let weight = share.total;
        let notable = weight.samples.saturating_mul(100) >= all.saturating_mul(MIN_PERCENT);
        let lack = match &state.problem {
            Some(_) => Lack::File,
            None if !notable => return None,
            None if !with_lines => Lack::Names,
            // Assembly has none where the rest has.
            None if known(&id) => return None,
            None => Lack::Lines,
        };
        made(state, lack, weight)
    };
    let mut found: Vec<Missing> = shares.into_iter().filter_map(of).collect();
    found.sort_by(|one, other| {
        let by_weight = other.weight.samples.cmp(&one.weight.samples);
        by_weight.then_with(|| one.file.cmp(&other.file))
    });
    found
}

/// What to say of a file; none if it is none that anybody could have.
fn made(state: &FileState, lack: Lack, weight: Weight) -> Option<Missing> {
    let wanted = &state.wanted;
    // Memory that is no file ([heap], //anon) has no names to miss, the remap range no lines.
    let path = wanted.path.as_os_str().as_encoded_bytes();
    let is_file = wanted.in_session || path.starts_with(b"/") && !path.starts_with(b"//");
    if !is_file || wanted.kind == ImageKind::Remap && lack != Lack::File {
        return None;
    }
    let build_id = hex(&wanted.build_id);
    let why = state.problem.as_ref().or(state.no_debug.as_ref());
    Some(Missing {
        fetch: match wanted.in_session && lack == Lack::File {
            true => vec!["copy the whole session from where it was recorded".to_owned()],
            false => fetch(&wanted.path, &build_id, wanted.kind, lack),
        },
        file: wanted.path.clone(),
        build_id,
        lack,
        why: why.cloned().unwrap_or_default(),
        weight,
    })
}

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

/// Where distributions put what their servers have debug information of.
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
fn fetch(path: &Path, build_id: &str, kind: ImageKind, lack: Lack) -> Vec<String> {
    let mut ways = Vec::new();
    let shown = shell_word(&path.to_string_lossy());
    // Such memory has a path and is no file that could be had; the kernel names that of shmat(2) /SYSV.
    if is_own_memory(path) || path.as_os_str().as_encoded_bytes().starts_with(b"/SYSV") {
        return ways;
    }
    if kind != ImageKind::Elf {
        if lack == Lack::Lines {
            ways.push(
                "compile the app with its line numbers: -keepattributes SourceFile,LineNumberTable for R8"
                    .to_owned(),
            );
        }
        return ways;
    }
    let android = ANDROID.iter().any(|root| path.starts_with(root));
    if lack == Lack::File {
        ways.push(if android {
            format!("adb pull {shown} DIR; varid report --symbols DIR")
        } else {
            format!("copy {shown} from where it was recorded to DIR; varid report --symbols DIR")
        });
    }
    let packaged = PACKAGED.iter().any(|root| path.starts_with(root));
    if android || !packaged {
        if lack != Lack::File {
            ways.push(
                "the file of the same build with debug information (-g, not stripped) in DIR; varid report --symbols DIR"
                    .to_owned(),
            );
        }
        return ways;
    }
    let is_libc = path
        .file_name()
        .is_some_and(|name| LIBC.iter().any(|libc| name == *libc));
    // Another machine's is not installed here.
    if lack != Lack::File && is_libc && path.exists() && Path::new("/etc/debian_version").exists() {
        ways.push("apt install libc6-dbg".to_owned());
    }
    if !build_id.is_empty() {
        let what = if lack == Lack::File {
            "executable"
        } else {
            "debuginfo"
        };
        ways.push(format!("debuginfod-find {what} {build_id}"));
    }
    ways
}

/// A word as sh(1) reads it back: what a process calls its files is no command.
fn shell_word(text: &str) -> String {
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
        let fetch = |path| fetch(Path::new(path), "", ImageKind::Elf, Lack::File).remove(0);
        let plain = "adb pull /data/app/~~a==/lib/arm64/libfoo.so DIR; varid report --symbols DIR";
        assert_eq!(fetch("/data/app/~~a==/lib/arm64/libfoo.so"), plain);
        assert_eq!(
            fetch("/data/app/$(reboot); it's a `lib`.so"),
            r"adb pull '/data/app/$(reboot); it'\''s a `lib`.so' DIR; varid report --symbols DIR"
        );
    }

    #[test]
    fn memory_without_a_file_is_not_to_be_copied() {
        for path in ["/memfd:jit-cache (deleted)", "/SYSV00000000 (deleted)"] {
            let ways = fetch(Path::new(path), "", ImageKind::Elf, Lack::File);
            assert!(ways.is_empty(), "{path}: {ways:?}");
        }
    }
}
