//! Names that have no special meaning to a shell or a terminal.

use std::path::Path;

/// Returns true if a name has no special meaning to a shell or a terminal.
#[must_use]
pub fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain)
}

/// The most characters of a name that [`plain_name`] makes.
const MAX_NAME: usize = 64;

/// Returns the last part of a path as a file name that has no special meaning to a shell, a terminal or a command: for
/// `/data/app/base.apk!classes2.dex` it is `base.apk-classes2.dex`.
#[must_use]
pub fn plain_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The kernel and VMs write names of memory in brackets.
    let bracketed = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let plain = |char: char| match char {
        '!' => '-',
        _ if is_plain(char) => char,
        _ => '_',
    };
    let name: String = bracketed
        .unwrap_or(&name)
        .chars()
        .take(MAX_NAME)
        .map(plain)
        .collect();
    match name.strip_prefix(['.', '-']) {
        Some(rest) => format!("_{rest}"),
        None if name.is_empty() => "_".to_owned(),
        None => name,
    }
}

const fn is_plain(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-' | '+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_is_plain() {
        for (path, name) in [
            ("/usr/lib/libstdc++.so.6", "libstdc++.so.6"),
            ("/x/$(reboot) \u{1b}[2J", "__reboot____2J"),
            ("/x/.hidden", "_hidden"),
            ("/x/-rf", "_rf"),
            ("/x/..", "_"),
            ("/", "_"),
            ("/x/é.so", "_.so"),
            ("/data/app/base.apk!classes2.dex", "base.apk-classes2.dex"),
            ("!x", "_x"),
            ("[DEX data]", "DEX_data"),
            ("[]", "_"),
            ("[-x]", "_x"),
        ] {
            assert_eq!(plain_name(Path::new(path)), name);
            assert!(is_plain_name(name), "{name}");
        }
        assert_eq!(plain_name(Path::new(&"x".repeat(300))).len(), MAX_NAME);
    }
}
