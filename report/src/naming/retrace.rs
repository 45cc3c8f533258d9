//! Restores the names of an app's methods that R8 or ProGuard renamed and inlined.

use std::{fs, path::Path};

use varid_symbolizer::{
    Frame,
    retrace::{Mapping, ObfuscatedFrame, Position},
};

use super::images::{NamedFunction, line};
use crate::error::{Error, Result};

/// The contents of a mapping file.
#[derive(Debug)]
pub struct Retracer {
    mapping: Mapping,
}

/// Reads a mapping file. Also returns a note if lines of it were skipped.
///
/// # Errors
///
/// The file cannot be read, or has no class.
pub fn read(path: &Path) -> Result<(Retracer, Option<String>)> {
    let bytes = fs::read(path).map_err(|source| Error::File {
        path: path.to_owned(),
        source,
    })?;
    let mapping = Mapping::parse(bytes).map_err(|source| Error::Symbols {
        path: path.to_owned(),
        source,
    })?;
    let note = match mapping.skipped() {
        0 => None,
        lines => Some(format!(
            "{}: {lines} lines make no sense and were left out",
            path.display()
        )),
    };
    Ok((Retracer { mapping }, note))
}

impl Retracer {
    /// Returns the original methods for a method of the dex file, innermost first, or the method itself if the mapping
    /// does not have it. `offset` is the distance from the method's first instruction in bytes. `has_lines` tells
    /// whether any instruction of the method has a line.
    pub fn retrace(
        &self,
        method: NamedFunction,
        offset: u64,
        has_lines: impl FnOnce() -> bool,
    ) -> Vec<NamedFunction> {
        let Some((frame, more)) = ObfuscatedFrame::of_method(&method.name) else {
            return vec![method];
        };
        let file = method.line.as_ref().map(|(file, _)| file.as_str());
        let unit = u32::try_from(offset / 2).ok();
        let position = match &method.line {
            Some((_, line)) => Some(Position::Line(*line)),
            // The instructions before a method's first line have no line, but its ranges refer to lines.
            None if self.mapping.is_r8() && !has_lines() => unit.map(Position::Pc),
            None => None,
        };
        let frames = self.mapping.frames_of(&ObfuscatedFrame {
            position,
            file,
            ..frame
        });
        let path = format!("{}.{}", frame.class, frame.method);
        let mut found = retraced(&frames, &method, &path, more);
        if found.is_empty() {
            found.push(method);
        }
        found
    }
}

/// Returns the functions for the original frames of a method. None if there are no frames. `path` is the method's name
/// without parameters. `more` is the part of the name about other methods that share its code.
fn retraced(
    frames: &[Frame<'_>],
    method: &NamedFunction,
    path: &str,
    more: &str,
) -> Vec<NamedFunction> {
    let Some((outermost, inlined)) = frames.split_last() else {
        return Vec::new();
    };
    let inlined = inlined.iter().map(|frame| NamedFunction {
        name: frame.function.clone().into_owned(),
        recorded: None,
        signature: None,
        start: 0,
        named: true,
        inlined: true,
        line: line(frame),
    });
    let renamed = outermost.function != path;
    let outermost = NamedFunction {
        // If the name without parameters is unchanged, keep the recorded name, which is the same in all reports.
        name: if renamed {
            format!("{}{more}", outermost.function)
        } else {
            method.name.clone()
        },
        recorded: renamed.then(|| method.name.clone()),
        // The types of its parameters may have been renamed as well.
        signature: method.signature.clone().filter(|_| !renamed),
        line: line(outermost),
        ..method.clone()
    };
    inlined.chain([outermost]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_code_is_renamed_with_its_count_and_a_dex_pc_is_no_line() {
        let text =
            "# compiler: R8\norg.A -> a:\n    void bar() -> b\n    0:9:void far():7:7 -> c\n";
        let retracer = Retracer {
            mapping: Mapping::parse(text.into()).unwrap(),
        };
        for (name, has_lines, expected, line) in [
            ("a.b", false, "org.A.bar", None),
            ("a.b() and 41 more", false, "org.A.bar and 41 more", None),
            // A real line that equals the pc by coincidence.
            ("a.c", false, "org.A.far", Some(7)),
            ("a.c", true, "org.A.far", None),
        ] {
            let method = NamedFunction {
                name: name.to_owned(),
                recorded: None,
                signature: None,
                start: 0,
                named: true,
                inlined: false,
                line: None,
            };
            let found = retracer.retrace(method, 14, || has_lines);
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].name, expected);
            assert_eq!(found[0].recorded.as_deref(), Some(name));
            assert_eq!(found[0].line.as_ref().map(|(_, line)| *line), line);
        }
    }
}
