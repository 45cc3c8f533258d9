//! What is asked for of a method, and what is the answer?

use std::{ops::Range, path::PathBuf, sync::Arc};

use varid_model::Layer;

use crate::{
    name_pattern::NamePattern,
    scope::percent,
    shares::SampleShare,
    view::PercentOf,
    weights::{EventId, SampleWeight},
};

/// What to annotate. The default is the whole method that has most samples, without sources.
#[derive(Debug, Clone, Default)]
pub struct AnnotateRequest {
    /// Its name, a part of it, a regular expression, or its address in its file (`0x…`); none: the hottest.
    pub method: Option<String>,
    /// Only methods of images whose name has this in it.
    pub image: Option<String>,
    /// Only methods of this layer.
    pub layer: Option<Layer>,
    /// Only methods with a matching name.
    pub symbol: Option<NamePattern>,
    /// Whose samples; none: those of the profile's first event.
    pub event: Option<EventId>,
    /// What percentages are of.
    pub percent_of: PercentOf,
    /// Folders and archives that have the sources.
    pub sources: Vec<PathBuf>,
    /// Only so many lines, the hottest, and those around them.
    pub limit: Option<usize>,
    /// Lines before and behind each.
    pub context: usize,
}

/// What a request is answered with.
#[derive(Debug, Clone)]
pub enum Annotated {
    /// The method.
    Method(Box<Annotation>),
    /// Several methods are meant.
    Candidates(Candidates),
}

/// Methods that a name may mean, those with most samples first.
#[derive(Debug, Clone)]
pub struct Candidates {
    /// The name.
    pub name: String,
    /// The methods.
    pub methods: Vec<Candidate>,
    /// How many more there are.
    pub more: usize,
}

/// A method that a name may mean.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// What it is, with its samples.
    pub method: AnnotatedMethod,
    /// How many percent of all samples are in it.
    pub own_percent: f64,
    /// How many percent of all samples have it in their stack.
    pub total_percent: f64,
}

/// A method's lines and instructions with their samples.
#[derive(Debug, Clone)]
pub struct Annotation {
    /// The method.
    pub method: AnnotatedMethod,
    /// What all samples of the event weigh.
    pub all: SampleWeight,
    /// What percentages are of.
    pub percent_of: PercentOf,
    /// The event's name.
    pub event: String,
    /// The session folder.
    pub session: PathBuf,
    /// Which samples count, as on the command line; empty: all.
    pub selected_by: String,
    /// Where the instructions were read.
    pub code_file: Option<String>,
    /// The source files with lines of it, that of the first instruction first.
    pub files: Vec<AnnotatedFile>,
    /// What is not shown, why, and what would show it.
    pub notes: Vec<String>,
}

/// Which method is annotated.
#[derive(Debug, Clone)]
pub struct AnnotatedMethod {
    /// Its name.
    pub name: String,
    /// Its name in the recording, if a mapping file gives it another one.
    pub recorded: Option<String>,
    /// The name of its image.
    pub image: String,
    /// Where the image was when it was recorded.
    pub path: Option<PathBuf>,
    /// What its samples count for.
    pub layer: Layer,
    /// Whether it is the copies of it in its callers.
    pub inlined: bool,
    /// Its addresses in its file; none: it has none of its own, or is not in a file.
    pub addresses: Option<Range<u64>>,
    /// What its instructions are; none: they are not shown.
    pub code: Option<&'static str>,
    /// With samples in its own instructions, those of functions compiled into it among them.
    pub own: SampleWeight,
    /// With samples that have it in their stack.
    pub total: SampleWeight,
    /// The part of its samples of which the instruction is one near that which executed.
    pub approximate: SampleWeight,
}

/// The lines of a source file.
#[derive(Debug, Clone)]
pub struct AnnotatedFile {
    /// Its name as the compiler recorded it; none: the instructions have no lines.
    pub name: Option<Arc<str>>,
    /// Where its text was found.
    pub found: Option<String>,
    /// Its lines that are shown, by number.
    pub lines: Vec<AnnotatedLine>,
}

/// A source line; without a number, the instructions that have none.
#[derive(Debug, Clone, Default)]
pub struct AnnotatedLine {
    /// Its number, from 1.
    pub number: Option<u32>,
    /// Its text.
    pub source: Option<String>,
    /// Whether it is of the method, not one between or around lines that are.
    pub is_of_method: bool,
    /// What it took.
    pub share: SampleShare,
    /// The part of its samples of which the line is one near that which executed.
    pub approximate: SampleWeight,
    /// The lines of functions compiled into it.
    pub inlined: Vec<InlinedLine>,
    /// Its instructions, by address.
    pub instructions: Vec<AnnotatedInstruction>,
}

/// A line of a function that was compiled into an annotated one.
#[derive(Debug, Clone)]
pub struct InlinedLine {
    /// The function.
    pub function: String,
    /// Its file and line.
    pub line: Option<(Arc<str>, u32)>,
    /// Its text.
    pub source: Option<String>,
    /// With samples at it.
    pub own: SampleWeight,
}

/// An instruction with its samples.
#[derive(Debug, Clone)]
pub struct AnnotatedInstruction {
    /// Its address in the file; of bytecode its offset in the dex file.
    pub address: u64,
    /// Where it is in the method: of bytecode in code units, else its address.
    pub place: u64,
    /// Bytes.
    pub len: u32,
    /// What it reads like.
    pub text: String,
    /// What it took.
    pub share: SampleShare,
    /// The part of its samples of which the instruction is one near that which executed.
    pub approximate: SampleWeight,
}

/// How the text of an annotation looks.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnnotationText {
    /// Columns of the terminal; none: lines are as long as they are.
    pub width: Option<usize>,
    /// Whether hot lines have colours.
    pub colour: bool,
}

impl Annotation {
    /// How many percent of all samples a weight is.
    pub(super) fn of_all(&self, weight: SampleWeight) -> f64 {
        let value = |weight| self.percent_of.value(weight);
        percent(value(weight), value(self.all))
    }

    /// How many percent of the method's own samples a weight is.
    pub(super) fn of_method(&self, weight: SampleWeight) -> f64 {
        let value = |weight| self.percent_of.value(weight);
        percent(value(weight), value(self.method.own))
    }

    /// All lines.
    pub(super) fn lines(&self) -> impl Iterator<Item = &AnnotatedLine> {
        self.files.iter().flat_map(|file| &file.lines)
    }
}
