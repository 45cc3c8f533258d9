//! The mnemonics of methods' bytecode.

use std::{collections::HashMap, path::PathBuf};

use super::{annotation::AnnotateRequest, code, code_file::CodeFile};
use crate::{
    frames::{ImageId, ProfileSymbol},
    profile::Profile,
};

/// Reads the mnemonics of methods. Methods of the same image should follow each other, so that its file is opened only once.
#[derive(Debug)]
pub(crate) struct Mnemonics<'p> {
    profile: &'p Profile,
    request: AnnotateRequest,
    /// The file of the previous method, or the reason why it could not be opened.
    file: Option<(ImageId, Result<CodeFile<'p>, String>)>,
}

impl<'p> Mnemonics<'p> {
    /// `class_path` has further folders and archives with Java's class files.
    pub fn new(profile: &'p Profile, class_path: &[PathBuf]) -> Self {
        Self {
            profile,
            request: AnnotateRequest {
                class_path: class_path.to_vec(),
                ..AnnotateRequest::default()
            },
            file: None,
        }
    }

    /// Returns the mnemonics of a method by the offset of the instruction, in code units.
    ///
    /// # Errors
    ///
    /// The reason why its instructions are not known.
    pub fn of(&mut self, symbol: &ProfileSymbol) -> Result<HashMap<u64, String>, String> {
        if self
            .file
            .as_ref()
            .is_none_or(|(image, _)| *image != symbol.image)
        {
            let opened = CodeFile::open(self.profile, symbol);
            let opened = opened.unwrap_or_else(|error| Err(error.to_string()));
            self.file = Some((symbol.image, opened));
        }
        let Some((_, Ok(file))) = &self.file else {
            let why = self.file.as_ref().and_then(|(_, file)| file.as_ref().err());
            return Err(why.cloned().unwrap_or_default());
        };
        let bounds = file.image.bounds(symbol.start);
        let bounds = bounds.unwrap_or(symbol.start..symbol.start);
        let mut notes = Vec::new();
        let code = code::read(file, bounds, self.profile, &self.request, &mut notes);
        if code.instructions().is_empty() {
            return Err(notes.into_iter().next().unwrap_or_default());
        }
        let named = code.instructions().iter().map(|instruction| {
            let name = instruction.text.split(' ').next().unwrap_or_default();
            let place = code.place(symbol.start, instruction.address);
            (place, name.to_owned())
        });
        Ok(named.collect())
    }
}
