//! The request for an annotation, and its result.

use std::{ops::Range, path::PathBuf, sync::Arc};

use varid_model::Layer;

use crate::{
    code_filter::CodeFilter,
    measures::ShownMeasures,
    scope::percent,
    shares::Share,
    view::PercentOf,
    weights::{EventId, Weight},
};

/// The kinds of bytecode: that of dex files, and that of Java's class files.
pub(super) const DEX: &str = "dex";
pub(super) const JVM: &str = "jvm";

/// A request for an annotation. The default is the whole method with the most samples, without sources.
#[derive(Debug, Clone, Default)]
pub struct AnnotateRequest {
    /// The method's name, a part of it, a regular expression, or its address in its file (`0x…`). None selects the
    /// hottest method.
    pub method: Option<String>,
    /// Only methods in images whose name contains this.
    pub image: Option<String>,
    /// Only these methods.
    pub code: CodeFilter,
    /// The event. None selects the profile's first event.
    pub event: Option<EventId>,
    /// The name of the measure, from [`Profile::measures`](crate::Profile::measures): one at most. If empty, samples are
    /// annotated, or [`Profile::default_measure`](crate::Profile::default_measure).
    pub measures: Vec<String>,
    /// The value that percentages refer to, if samples are annotated.
    pub percent_of: PercentOf,
    /// Folders and archives with sources.
    pub sources: Vec<PathBuf>,
    /// Folders and archives with Java's class files. They are also looked for in those with sources, and in the
    /// recorded class path.
    pub class_path: Vec<PathBuf>,
    /// The most lines, hottest first, not counting their context.
    pub limit: Option<usize>,
    /// Number of lines before and after each line.
    pub context: usize,
}

/// The result of a request.
#[derive(Debug, Clone)]
pub enum Annotated {
    /// The method.
    Method(Box<Annotation>),
    /// The name is ambiguous.
    Candidates(Candidates),
}

/// The methods that match an ambiguous name, sorted by descending values.
#[derive(Debug, Clone)]
pub struct Candidates {
    /// The requested name.
    pub name: String,
    /// What their values count: `samples`, or the name of the measure.
    pub counted: String,
    /// The methods.
    pub methods: Vec<Candidate>,
    /// The number of candidates that are not listed.
    pub more: usize,
}

/// A method that matches an ambiguous name.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The method with its samples.
    pub method: AnnotatedMethod,
    /// Own samples of the method as a percentage of all samples.
    pub own_percent: f64,
    /// Total samples of the method as a percentage of all samples.
    pub total_percent: f64,
}

/// A method's lines and instructions with their samples.
#[derive(Debug, Clone)]
pub struct Annotation {
    /// The method.
    pub method: AnnotatedMethod,
    /// The weight of all samples of the event, or the sum of the measure.
    pub all: Weight,
    /// The measures of the weights: samples and their periods, or one measure.
    pub(crate) measures: ShownMeasures,
    /// The value that percentages refer to, if the measures are samples.
    pub percent_of: PercentOf,
    /// The event's name.
    pub event: String,
    /// The session folder.
    pub session: PathBuf,
    /// The selection of samples as on the command line. Empty if all count.
    pub selected_by: String,
    /// The file from which the instructions were read.
    pub code_file: Option<String>,
    /// The compiled code in which the method was sampled, that with the most samples first.
    pub compiled: Vec<AnnotatedCode>,
    /// The source files with lines of the method. The file of the first instruction comes first.
    pub files: Vec<AnnotatedFile>,
    /// Notes on missing data: the reason, and how to get it.
    pub notes: Vec<String>,
}

/// The method of an annotation.
#[derive(Debug, Clone)]
pub struct AnnotatedMethod {
    /// Its name.
    pub name: String,
    /// The parameters of a method on HotSpot.
    pub signature: Option<String>,
    /// The name in the recording, if a mapping file renames it.
    pub recorded: Option<String>,
    /// The name of its image.
    pub image: String,
    /// The recorded path of the image.
    pub path: Option<PathBuf>,
    /// The layer of its samples.
    pub layer: Layer,
    /// Whether it stands for the inlined copies of the function in its callers.
    pub inlined: bool,
    /// The addresses in its file. None if it is inlined or not in a file.
    pub addresses: Option<Range<u64>>,
    /// The kind of its instructions. None if they are not shown.
    pub code: Option<&'static str>,
    /// Own: samples in its instructions, including those of functions inlined into it. Total: samples with the method in
    /// their stack.
    pub share: Share,
    /// The part of its samples with an approximate instruction.
    pub approximate: Weight,
}

impl AnnotatedMethod {
    /// Returns true if its instructions are those of a VM.
    pub(super) fn has_bytecode(&self) -> bool {
        matches!(self.code, Some(DEX | JVM))
    }
}

/// Code that a VM has compiled, in which the method was sampled.
#[derive(Debug, Clone)]
pub struct AnnotatedCode {
    /// The letter that stands for it.
    pub label: char,
    /// What it is, in the VM's terms.
    pub name: String,
    /// The address of its first instruction in the process.
    pub start: u64,
    /// Its size in bytes.
    pub size: usize,
    /// The instruction set.
    pub set: &'static str,
    /// The method's own samples in it.
    pub own: Weight,
}

/// The lines of a source file.
#[derive(Debug, Clone)]
pub struct AnnotatedFile {
    /// The name recorded by the compiler. None for instructions and samples without lines.
    pub name: Option<Arc<str>>,
    /// Where the source was found.
    pub found: Option<String>,
    /// The shown lines in ascending order.
    pub lines: Vec<AnnotatedLine>,
}

/// A source line, or, if it has no number, the instructions and samples without a line.
#[derive(Debug, Clone, Default)]
pub struct AnnotatedLine {
    /// Line number, from 1.
    pub number: Option<u32>,
    /// Its text.
    pub source: Option<String>,
    /// Whether the line belongs to the method. False for other lines between and around them.
    pub is_of_method: bool,
    /// The samples of the line.
    pub share: Share,
    /// The part of its samples with an approximate line.
    pub approximate: Weight,
    /// The lines of functions inlined into it.
    pub inlined: Vec<InlinedLine>,
    /// Its instructions in order of address.
    pub instructions: Vec<AnnotatedInstruction>,
    /// The instructions of compiled code with samples of the line, if its bytecode is not known.
    pub compiled: Vec<CompiledInstruction>,
}

impl AnnotatedLine {
    /// Returns true if it has own samples that none of its instructions has.
    pub(super) fn has_samples_of_no_instruction(&self) -> bool {
        let mut listed = Weight::default();
        for instruction in &self.instructions {
            listed.add(instruction.share.own);
        }
        !self.share.own.without(listed).is_zero()
    }
}

/// A line of a function that was inlined into the annotated one.
#[derive(Debug, Clone)]
pub struct InlinedLine {
    /// The function.
    pub function: String,
    /// Its file and line.
    pub line: Option<(Arc<str>, u32)>,
    /// Its text.
    pub source: Option<String>,
    /// Samples at this line.
    pub own: Weight,
}

/// An instruction with its samples.
#[derive(Debug, Clone)]
pub struct AnnotatedInstruction {
    /// Address in the file. For bytecode, the offset in the dex file.
    pub address: u64,
    /// Position in the method: in code units for dex bytecode, in bytes for Java's, otherwise the address.
    pub place: u64,
    /// Size in bytes.
    pub len: u32,
    /// The disassembly.
    pub text: String,
    /// The samples of the instruction.
    pub share: Share,
    /// The part of its samples that are approximate.
    pub approximate: Weight,
    /// The instructions of compiled code with samples of it, and those around them.
    pub compiled: Vec<CompiledInstruction>,
}

/// An instruction of compiled code.
#[derive(Debug, Clone)]
pub struct CompiledInstruction {
    /// [`AnnotatedCode::label`].
    pub code: char,
    /// Its address in the process.
    pub address: u64,
    /// Its distance from the code's first instruction, in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub len: u32,
    /// The disassembly.
    pub text: String,
    /// Its samples that are recorded at the bytecode or line above it.
    pub own: Weight,
}

/// Options for the text of an annotation.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnnotationText {
    /// Width of the terminal in columns. None does not limit lines.
    pub width: Option<usize>,
    /// Whether hot lines are coloured.
    pub colour: bool,
}

impl Annotation {
    /// Returns the percentage of a weight in all samples.
    pub(super) fn of_all(&self, weight: Weight) -> f64 {
        let value = |weight| self.measures.value(weight);
        percent(value(weight), value(self.all))
    }

    /// Returns the percentage of a weight in the method's own samples.
    pub(super) fn of_method(&self, weight: Weight) -> f64 {
        let value = |weight| self.measures.value(weight);
        percent(value(weight), value(self.method.share.own))
    }

    /// Describes what the values count.
    pub(super) fn counted(&self) -> String {
        match self.measures.lead() {
            Some(measure) if !self.measures.are_samples() => measure.title(),
            _ => format!("samples of {}", self.event),
        }
    }

    /// All lines.
    pub(super) fn lines(&self) -> impl Iterator<Item = &AnnotatedLine> {
        self.files.iter().flat_map(|file| &file.lines)
    }
}
