//! Which file is meant by a name.

use std::{borrow::Cow, fs, io, path::Path};

use crate::error::{Error, Result};

/// A description that varid has.
#[derive(Debug, Clone, Copy)]
pub struct Shipped {
    /// Its name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

/// Returns the description with a name.
#[must_use]
pub fn find(all: &'static [Shipped], name: &str) -> Option<&'static Shipped> {
    all.iter().find(|shipped| shipped.name == name)
}

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 4 << 20;

/// Returns the text of the description with a name, or of the file with this path. None: there is neither.
///
/// # Errors
///
/// The file cannot be read, or the name is a path on which there is none.
pub fn text_of(all: &'static [Shipped], name: &str) -> Result<Option<Cow<'static, str>>> {
    if let Some(shipped) = find(all, name) {
        return Ok(Some(Cow::Borrowed(shipped.text)));
    }
    let path = Path::new(name);
    let looks_like_a_path = name.contains('/') || name.ends_with(".toml");
    let failed = |source| Error::Read {
        path: path.to_owned(),
        source,
    };
    let file = match fs::metadata(path) {
        Ok(file) => file,
        Err(_) if !looks_like_a_path => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let problem = match (file.is_file(), file.len()) {
        (false, _) => "it is not a file",
        (true, length) if length > MAX_FILE => "it has more than 4 MB",
        _ => {
            let text = fs::read_to_string(path).map_err(failed)?;
            return Ok(Some(Cow::Owned(text)));
        }
    };
    Err(failed(io::Error::other(problem)))
}
