//! Names without control characters.

use std::borrow::Cow;

use varid_recording::terminal::one_line;

/// Makes a name printable in one line, without control characters for terminals or viewers.
pub fn plain(name: &str) -> Cow<'_, str> {
    let is_plain = name
        .bytes()
        .all(|byte| byte.is_ascii() && !byte.is_ascii_control());
    if is_plain {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(one_line(name))
    }
}
