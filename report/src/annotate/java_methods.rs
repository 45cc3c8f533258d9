//! The Java methods of calling contexts, with their class files or dex files.

use std::path::PathBuf;

use varid_recording::{Contexts, MethodId};
use varid_symbolizer::{bytecode::MethodCode, dex::DexFile};

use super::{annotation::AnnotateRequest, code_file::CodeFile};
use crate::{
    frames::{ImageId, ProfileSymbol},
    naming::JavaMethod,
    profile::Profile,
};

/// The code of a method.
#[derive(Debug, Clone, Copy)]
pub enum MethodSource<'s> {
    /// Its class file.
    Class(&'s [u8]),
    /// Its dex file, and where its code is there.
    Dex(&'s DexFile<'static>, &'s MethodCode),
}

/// Visits the methods of contexts, those of an image one after the other: a method's name, if it is one of Java, and its code, or the
/// reason why there is none. A native method has no code either. `class_path` has further folders and archives with class files.
pub fn visit_java_methods(
    contexts: &Contexts,
    profile: &Profile,
    class_path: &[PathBuf],
    mut visit: impl FnMut(MethodId, Option<&JavaMethod>, Result<MethodSource<'_>, String>),
) {
    let request = AnnotateRequest {
        class_path: class_path.to_vec(),
        ..AnnotateRequest::default()
    };
    let symbol_of = |index: usize| {
        let frame = profile.context_methods.get(index).copied().flatten()?;
        let frame = profile.frames.frames().get(frame.index())?;
        profile.frames.symbol(frame.symbol)
    };
    let mut order: Vec<_> = (0..=u32::MAX)
        .map(MethodId)
        .zip(contexts.methods())
        .collect();
    order.sort_by_key(|(id, _)| symbol_of(id.index()).map(|symbol| symbol.image));
    let mut file: Option<(ImageId, Result<CodeFile<'_>, String>)> = None;
    for (id, method) in order {
        let Some(symbol) = symbol_of(id.index()) else {
            visit(id, None, Err("nothing is known of its address".to_owned()));
            continue;
        };
        if file
            .as_ref()
            .is_none_or(|(image, _)| *image != symbol.image)
        {
            let opened = CodeFile::open(profile, symbol);
            let opened = opened.unwrap_or_else(|error| Err(error.to_string()));
            file = Some((symbol.image, opened));
        }
        match &file {
            Some((_, Ok(file))) => {
                let has_code = method.code.is_some();
                visit_method(file, symbol, profile, &request, has_code, |name, code| {
                    visit(id, name, code);
                });
            }
            Some((_, Err(why))) => visit(id, None, Err(why.clone())),
            None => {}
        }
    }
}

fn visit_method(
    file: &CodeFile<'_>,
    symbol: &ProfileSymbol,
    profile: &Profile,
    request: &AnnotateRequest,
    has_code: bool,
    visit: impl FnOnce(Option<&JavaMethod>, Result<MethodSource<'_>, String>),
) {
    let range = file.image.bounds(symbol.start);
    let range = range.unwrap_or(symbol.start..symbol.start);
    let Some(method) = file.image.java_method(range.start) else {
        return visit(None, Err("it is not a method of Java".to_owned()));
    };
    if !has_code {
        return visit(Some(&method), Err("it is native".to_owned()));
    }
    match file.counted_dex(profile) {
        Ok(None) => {}
        Ok(Some(files)) => {
            let found = files.find(&method, &range);
            return match &found {
                Ok(found) => match &found.code {
                    Some(code) => visit(Some(&method), Ok(MethodSource::Dex(found.dex, code))),
                    None => visit(Some(&method), Err("it is native".to_owned())),
                },
                Err(why) => visit(Some(&method), Err(why.clone())),
            };
        }
        Err(why) => return visit(Some(&method), Err(why.clone())),
    }
    let found = match file.class_files(profile, request) {
        Ok(files) => files.find(&file.image, &range, &method),
        Err(why) => Err(why.clone()),
    };
    match found {
        Ok(class) => visit(Some(&method), Ok(MethodSource::Class(&class.bytes))),
        Err(why) => visit(Some(&method), Err(why)),
    }
}
