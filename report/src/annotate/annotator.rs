//! Annotates one method after the other.

use varid_recording::ImageKind;

use super::{
    annotation::{AnnotateRequest, Annotation},
    choose,
    code::{self, Code},
    code_file::CodeFile,
    compiled::{self, CompiledListing},
    lines::Lines,
    sources::{NameKind, Sources},
    window,
};
use crate::{
    error::Result,
    frames::{ImageId, SymbolId},
    scope::Scope,
    shares::Share,
};

/// Note for a method with run-time code, of which only the samples are known.
const RUN_TIME: &str = "no lines and no instructions: of code that was made at run time a session has the names; 'varid report --callgraph --symbol NAME' has its callers and what it calls";

/// Annotates methods of an event. Methods of the same image should follow each other, so that its file is opened only once.
#[derive(Debug)]
pub struct Annotator<'s, 'p> {
    scope: &'s Scope<'p>,
    request: &'s AnnotateRequest,
    sources: Sources,
    /// The file of the previous method, or a note on why it could not be opened.
    file: Option<(ImageId, Result<CodeFile<'p>, String>)>,
}

impl<'s, 'p> Annotator<'s, 'p> {
    /// # Errors
    ///
    /// A folder or archive of the request's sources does not exist.
    pub fn new(scope: &'s Scope<'p>, request: &'s AnnotateRequest) -> Result<Self> {
        Ok(Self {
            scope,
            request,
            sources: Sources::open(&request.sources)?,
            file: None,
        })
    }

    /// Annotates a symbol with this share.
    ///
    /// # Errors
    ///
    /// A folder or file of the profile's options cannot be read.
    pub fn annotate(&mut self, id: SymbolId, share: Share) -> Result<Annotation> {
        let (scope, request) = (self.scope, self.request);
        let profile = scope.profile;
        let symbol = profile.frames.symbol(id);
        let is_run_time = symbol.is_some_and(|symbol| symbol.run_time);
        match is_run_time {
            true => self.file = None,
            false => self.open_file(id)?,
        }
        let mut method = choose::described(scope, id, share);
        let mut notes = Vec::new();
        let file = self.opened(&mut notes);
        if let (Some(_), Some(symbol)) = (file, symbol.filter(|symbol| symbol.inlined)) {
            notes.push(format!(
                "{} was compiled into its callers: its instructions are in theirs, which 'varid report --callgraph --symbol NAME' lists",
                symbol.name
            ));
        }
        if is_run_time {
            notes.push(RUN_TIME.to_owned());
        }
        let start = symbol
            .filter(|symbol| !symbol.inlined)
            .map(|symbol| symbol.start);
        let mut lines = Lines::new(scope, id);
        let mut code = Code::None;
        let mut compiled = CompiledListing::default();
        if let (Some(file), Some(symbol), Some(start)) = (file, symbol, start) {
            let bounds = file.image.bounds(start).unwrap_or(start..start);
            code = code::read(file, bounds.clone(), profile, request, &mut notes);
            method.addresses = Some(bounds.clone());
            compiled = compiled::read(scope, symbol.image, &file.image, &bounds);
            lines.add_code(&file.image, bounds, &code);
            lines.add_compiled(&file.image, compiled.instructions);
        }
        if !compiled.hidden.is_zero() {
            let hidden = scope.measures.count(compiled.hidden);
            notes.push(format!(
                "{hidden} samples in other compiled code have no instructions here: it is not kept, or has fewer samples"
            ));
        }
        lines.add_without_line(share.own);
        method.code = code.kind();
        method.approximate = lines.approximate();
        let names = match file.is_some_and(|opened| opened.file.kind != ImageKind::Elf) {
            true => NameKind::Package,
            false => NameKind::Path,
        };
        let files = match is_run_time {
            true => Vec::new(),
            false => lines.finish(&self.sources, names, &mut notes),
        };
        let mut annotation = Annotation {
            method,
            all: scope.all,
            measures: scope.measures.clone(),
            percent_of: request.percent_of,
            event: scope.description.name.clone(),
            session: profile.recording.session.clone(),
            selected_by: profile.options.describe(),
            code_file: code.into_file(),
            compiled: compiled.codes,
            files,
            notes,
        };
        window::select(&mut annotation, request);
        Ok(annotation)
    }

    /// Returns the open file, or adds a note on why it could not be opened.
    fn opened(&self, notes: &mut Vec<String>) -> Option<&CodeFile<'p>> {
        let (_, file) = self.file.as_ref()?;
        file.as_ref().map_err(|why| notes.push(why.clone())).ok()
    }

    /// Opens the file of a symbol's image, unless it is already open.
    fn open_file(&mut self, id: SymbolId) -> Result<()> {
        let profile = self.scope.profile;
        let Some(symbol) = profile.frames.symbol(id) else {
            self.file = None;
            return Ok(());
        };
        let is_open = self.file.as_ref();
        if is_open.is_none_or(|(image, _)| *image != symbol.image) {
            self.file = Some((symbol.image, CodeFile::open(profile, symbol)?));
        }
        Ok(())
    }
}
