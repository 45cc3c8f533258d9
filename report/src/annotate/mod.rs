//! Which source lines and instructions of one method have the samples?
//!
//! | question | file |
//! |---|---|
//! | what is asked for, and what is the answer | `annotation` |
//! | which method is meant | `choose` |
//! | which instructions does it have, and what do they read like | `code`, `instruction`, `machine` |
//! | where is the recorded dex file | `dex_files` |
//! | where are the sources, and what is in them | `sources`, `source_text` |
//! | what did each line and instruction take | `lines` |
//! | which lines are shown | `window` |
//! | how does it look to people | `text`, `text_rows` |
//! | how does it look to programs | `json` |
//!
//! Names and files come from the recording, which is not trusted: no source outside of the folders and archives that the user names is read, the
//! dex file at its recorded path counts only if it has the recorded content, and nothing that is read is printed as more than text.

mod annotation;
mod choose;
mod code;
mod dex_files;
mod instruction;
mod json;
mod lines;
mod machine;
mod source_text;
mod sources;
mod text;
mod text_rows;
mod window;

use varid_recording::ImageKind;

pub use annotation::{
    AnnotateRequest, Annotated, AnnotatedFile, AnnotatedInstruction, AnnotatedLine,
    AnnotatedMethod, Annotation, AnnotationText, Candidate, Candidates, InlinedLine,
};
pub use json::{write_annotation_json, write_candidates_json};
pub use text::{write_annotation_text, write_candidates};

use crate::{
    error::Result,
    frames::SymbolId,
    naming::{ImageFile, OpenImage},
    profile::Profile,
    scope::Scope,
    shares::Share,
    view::View,
};
use code::Code;
use lines::Lines;
use sources::Sources;

/// Annotates a method of a profile that was read with [`Options::sampled_addresses`](crate::Options::sampled_addresses), lines and inlined functions.
///
/// # Errors
///
/// No method is meant; the profile does not have the event; a folder or file of the options or of [`AnnotateRequest::sources`] cannot be read.
pub fn annotate(profile: &Profile, request: &AnnotateRequest) -> Result<Annotated> {
    let view = View {
        event: request.event,
        layer: request.layer,
        symbol: request.symbol.clone(),
        percent_of: request.percent_of,
        ..View::default()
    };
    let scope = Scope::new(profile, &view)?;
    let (symbol, share) = match choose::choose(&scope, request)? {
        choose::Choice::One(symbol, share) => (symbol, share),
        choose::Choice::Several(candidates) => return Ok(Annotated::Candidates(candidates)),
    };
    let sources = Sources::open(&request.sources)?;
    Ok(Annotated::Method(Box::new(annotation_of(
        &scope,
        (symbol, share),
        request,
        &sources,
    )?)))
}

/// The annotation of one symbol.
fn annotation_of(
    scope: &Scope,
    (id, share): (SymbolId, Share),
    request: &AnnotateRequest,
    sources: &Sources,
) -> Result<Annotation> {
    let profile = scope.profile;
    let mut method = choose::described(scope, id, share);
    let mut notes = Vec::new();
    let opened = open_image(profile, id, &mut notes)?;
    let symbol = profile.frames.symbol(id);
    let start = symbol
        .filter(|symbol| !symbol.inlined)
        .map(|symbol| symbol.start);
    let mut lines = Lines::new(scope, id);
    let mut code = Code::None;
    if let (Some((image, file)), Some(start)) = (&opened, start) {
        let bounds = image.bounds(start).unwrap_or(start..start);
        code = code::read((image, file), bounds.clone(), profile, request, &mut notes);
        method.addresses = Some(bounds.clone());
        lines.add_code(image, bounds, &code);
    }
    method.code = code.kind();
    method.approximate = lines.approximate();
    let is_managed = opened
        .as_ref()
        .is_some_and(|(_, file)| file.kind != ImageKind::Elf);
    let files = lines.finish((sources, is_managed), &mut notes);
    let mut annotation = Annotation {
        method,
        all: scope.all,
        percent_of: request.percent_of,
        event: scope.description.name.clone(),
        session: profile.recording.session.clone(),
        selected_by: profile.options.describe(),
        code_file: code.into_file(),
        files,
        notes,
    };
    window::select(&mut annotation, request);
    Ok(annotation)
}

/// The file of a symbol's image; none if it has none, with a note that says why.
fn open_image<'p>(
    profile: &'p Profile,
    id: SymbolId,
    notes: &mut Vec<String>,
) -> Result<Option<(OpenImage<'p>, &'p ImageFile)>> {
    let Some(symbol) = profile.frames.symbol(id) else {
        return Ok(None);
    };
    let image = profile.frames.image(symbol.image);
    let file = usize::try_from(symbol.image.0).ok();
    let file = file.and_then(|index| profile.files.get(index)?.as_ref());
    let (Some(image), Some(state)) = (image, file) else {
        notes.push(match symbol.layer {
            varid_model::Layer::Kernel => {
                "no instructions: the kernel changes its own code while it runs, so no file has it; --vmlinux FILE with debug information gives lines"
                    .to_owned()
            }
            _ => format!("no instructions: {} is no file", profile_image(profile, id)),
        });
        return Ok(None);
    };
    if symbol.inlined {
        notes.push(format!(
            "{} was compiled into its callers: its instructions are in theirs, which 'varid report --callgraph --symbol NAME' lists",
            symbol.name
        ));
    }
    let names = (&profile.options.names, &profile.recording.manifest);
    match OpenImage::new(names, image, &state.file)? {
        Ok(opened) => Ok(Some((opened, &state.file))),
        Err(why) => {
            notes.push(format!(
                "no instructions, and no lines but sampled ones: {} cannot be read: {why}; --symbols DIR with the recorded file",
                state.file.path.display()
            ));
            Ok(None)
        }
    }
}

/// The name of a symbol's image.
fn profile_image(profile: &Profile, id: SymbolId) -> String {
    let symbol = profile.frames.symbol(id);
    let image = symbol.and_then(|symbol| profile.frames.image(symbol.image));
    image.map_or_else(String::new, |image| image.name.clone())
}
