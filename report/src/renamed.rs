//! What were an app's methods called before R8 or ProGuard renamed and inlined them?

use std::{fs, path::Path};

use varid_symbolizer::retrace::Mapping;

use crate::{
    error::{Error, Result},
    image::{Function, line},
};

/// Reads a mapping file; beside it what is to be noted of it.
///
/// # Errors
///
/// It cannot be read, or says nothing of any class.
pub fn read(path: &Path) -> Result<(Mapping, Option<String>)> {
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
    Ok((mapping, note))
}

/// The methods of the source that a method of the dex file stands for, innermost first; itself
/// if the mapping does not tell.
pub fn retraced(mapping: &Mapping, method: Function) -> Vec<Function> {
    let (path, params) = match method.name.strip_suffix(')') {
        Some(call) => call
            .split_once('(')
            .map_or((call, None), |(path, params)| (path, Some(params))),
        None => (method.name.as_str(), None),
    };
    let Some((class, name)) = path.rsplit_once('.') else {
        return vec![method];
    };
    let number = method.line.as_ref().map(|(_, number)| *number);
    let frames = mapping.frames(class, name, number, params);
    let Some((outermost, inlined)) = frames.split_last() else {
        return vec![method];
    };
    let inlined = inlined.iter().map(|frame| Function {
        name: frame.function.clone().into_owned(),
        recorded: None,
        start: 0,
        named: true,
        inlined: true,
        line: line(frame),
    });
    let known = outermost.function != path;
    let outermost = Function {
        // Without parameters a name that stays is the same in all reports.
        name: if known {
            outermost.function.clone().into_owned()
        } else {
            method.name.clone()
        },
        recorded: known.then_some(method.name),
        line: line(outermost),
        ..method
    };
    inlined.chain([outermost]).collect()
}
