//! Annotates the source lines and instructions of one method with their samples.
//!
//! | question | file |
//! |---|---|
//! | what is asked for, and what is the answer | `annotation` |
//! | which method is meant | `choose` |
//! | what is one method's annotation made of | `annotator` |
//! | which instructions does it have, and what do they read like | `code`, `instruction`, `machine` |
//! | which file has them, where is the recorded dex file or class file | `code_file`, `dex_files`, `counted_dex`, `class_files` |
//! | where are the sources, and what is in them | `sources`, `source_text` |
//! | which mnemonics do the instructions of many methods have | `mnemonics` |
//! | which class files have the methods of calling contexts | `java_methods` |
//! | which instructions of compiled code were sampled | `compiled` |
//! | what did each line and instruction take | `lines` |
//! | which lines are shown | `window` |
//! | how does it look to people | `text`, `text_rows` |
//! | how does it look to programs | `json` |
//!
//! Names and files come from the recording, which is not trusted. Sources are only read in folders and archives that
//! the user names. The dex file at its recorded path is only used if it has the recorded content, a class file in the
//! recorded class path only if it has the recorded method. Text is escaped before it is printed.

mod annotation;
mod annotator;
mod choose;
mod class_files;
mod code;
mod code_file;
mod compiled;
mod counted_dex;
mod dex_files;
mod instruction;
mod java_methods;
mod json;
mod lines;
mod machine;
mod mnemonics;
mod source_text;
mod sources;
mod text;
mod text_rows;
mod window;

pub use annotation::{
    AnnotateRequest, Annotated, AnnotatedCode, AnnotatedFile, AnnotatedInstruction, AnnotatedLine,
    AnnotatedMethod, Annotation, AnnotationText, Candidate, Candidates, CompiledInstruction,
    InlinedLine,
};
pub(crate) use annotator::Annotator;
pub(crate) use choose::{LeastPercent, hottest};
pub use java_methods::{MethodSource, visit_java_methods};
pub(crate) use json::annotation_json;
pub use json::{write_annotation_json, write_candidates_json};
pub(crate) use mnemonics::Mnemonics;
pub use text::{write_annotation_text, write_candidates};
pub(crate) use window::keep_hottest;

use crate::{
    error::{Error, Result},
    profile::Profile,
    scope::Scope,
    view::View,
};

/// Annotates a method of a profile that was read with
/// [`Options::sampled_addresses`](crate::Options::sampled_addresses), lines and inlined functions.
///
/// # Errors
///
/// No method matches; the profile does not have the event or the measure; a folder or file of the options or of
/// [`AnnotateRequest::sources`] cannot be read.
pub fn annotate(profile: &Profile, request: &AnnotateRequest) -> Result<Annotated> {
    if request.measures.len() > 1 {
        return Err(Error::SeveralMeasures {
            what: "an annotation",
        });
    }
    let view = View {
        event: request.event,
        measures: request.measures.clone(),
        code: request.code.clone(),
        percent_of: request.percent_of,
        ..View::default()
    };
    let scope = Scope::new(profile, &view)?;
    let (symbol, share) = match choose::choose(&scope, request)? {
        choose::Choice::One(symbol, share) => (symbol, share),
        choose::Choice::Several(candidates) => return Ok(Annotated::Candidates(candidates)),
    };
    let annotation = Annotator::new(&scope, request)?.annotate(symbol, share)?;
    Ok(Annotated::Method(Box::new(annotation)))
}
