//! Maps obfuscated classes, methods and lines, which R8 or ProGuard renamed and inlined, to those of the source.
//!
//! [`Mapping`] is the `mapping.txt` that they write. One obfuscated frame can stand for several frames of the source, because
//! of inlining. It can also be ambiguous: one of several methods. [`Mapping::frames`] then returns nothing, and
//! [`Mapping::alternatives`] returns all candidates. A name is never guessed.
//!
//! Supported are classes, methods and line ranges with inlined frames, overloads by their parameters (the obfuscated ones,
//! where R8 has a residual signature), source files, and synthesized methods, which are omitted unless nothing else remains.
//! An outlined method keeps the name that R8 gave it. The line of its caller is unknown, because it depends on the pair of
//! frames.
//!
//! The format is described in ProGuard's manual, "retrace", and in R8's `doc/retrace.md`. Results for ProGuard's files are compared with
//! those of ProGuard's own retrace. Results for R8's files are compared with its documentation, and the source files of classes with the
//! results of R8's retrace. [`Mapping::retrace`] rewrites the lines of a stack trace.

mod frame;
mod text;
mod trace;

pub use frame::{ObfuscatedFrame, Position};

use crate::dex::type_name;
use crate::{Error, Frame, Location, Result};
use std::borrow::Cow;
use std::collections::HashMap;
use text::{Line, Member, Original, Span};

/// The maximum number of frames that one frame stands for.
const MAX_FRAMES: usize = 256;
/// The maximum number of methods that an ambiguous frame can be.
const MAX_ALTERNATIVES: usize = 64;
/// R8's range for a method whose code comes from one line.
const CATCH_ALL: (u32, u32) = (0, 65535);

/// A parsed mapping file.
#[derive(Debug, Clone, Default)]
pub struct Mapping {
    text: String,
    classes: Vec<Class>,
    /// Grouped by class and sorted by obfuscated name, otherwise in the order of the file.
    members: Vec<Member>,
    by_obfuscated: HashMap<Box<str>, ClassId>,
    by_original: HashMap<Box<str>, ClassId>,
    skipped: usize,
    is_r8: bool,
}

/// The index of a class in [`Mapping::classes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ClassId(u32);

impl ClassId {
    /// Returns the id with this index. Every index fits because a file has at most 1 GB.
    fn of(index: usize) -> Self {
        Self(u32::try_from(index).unwrap_or(u32::MAX))
    }

    /// Returns the index.
    const fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Clone, Copy)]
struct Class {
    original: Span,
    source_file: Option<Span>,
    synthesized: bool,
    /// The range of its members in [`Mapping::members`].
    first: usize,
    end: usize,
}

impl Mapping {
    /// Reads a mapping file. Invalid lines are skipped and counted.
    ///
    /// Memory is bounded by a small multiple of the file's size.
    ///
    /// # Errors
    /// [`Error::Mapping`] if it has no class, or is larger than 1 GB.
    pub fn parse(bytes: Vec<u8>) -> Result<Self> {
        const MAX_SIZE: usize = 1 << 30;
        let bad = |line, problem| Err(Error::Mapping { line, problem });
        if bytes.len() > MAX_SIZE {
            return bad(1, "more than 1 GB are not read");
        }
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let mut mapping = Self::default();
        // Whether a comment is about the last method. Before the first method, it is about the class.
        let mut after_method = false;
        for line in text.lines() {
            let Some(read) = Line::read(&text, line) else {
                mapping.skipped = mapping.skipped.saturating_add(1);
                continue;
            };
            if let Line::Class { .. } | Line::Method(_) = read {
                after_method = matches!(read, Line::Method(_));
            }
            mapping.add(&text, read, after_method);
        }
        mapping.end_class(&text);
        if mapping.classes.is_empty() {
            return bad(1, "no line says what a class was called");
        }
        mapping.text = text;
        Ok(mapping)
    }

    /// Adds the content of a line.
    fn add(&mut self, text: &str, line: Line, after_method: bool) {
        let member = self.members.last_mut().filter(|_| after_method);
        match (line, member) {
            (
                Line::Class {
                    original,
                    obfuscated,
                },
                _,
            ) => {
                self.end_class(text);
                let id = ClassId::of(self.classes.len());
                // Of two classes with the same name the first one wins.
                self.by_obfuscated
                    .entry(obfuscated.get(text).into())
                    .or_insert(id);
                self.by_original
                    .entry(original.get(text).into())
                    .or_insert(id);
                self.classes.push(Class {
                    original,
                    source_file: None,
                    synthesized: false,
                    first: self.members.len(),
                    end: self.members.len(),
                });
            }
            (Line::Method(member), _) if !self.classes.is_empty() => self.members.push(member),
            (Line::Method(_), _) => self.skipped = self.skipped.saturating_add(1),
            (Line::SourceFile(name), _) => {
                if let Some(class) = self.classes.last_mut() {
                    class.source_file = Some(name);
                }
            }
            (Line::Residual(descriptor), Some(member)) => member.residual = Some(descriptor),
            (Line::Synthesized, Some(member)) => member.synthesized = true,
            (Line::Synthesized, None) => {
                if let Some(class) = self.classes.last_mut() {
                    class.synthesized = true;
                }
            }
            (Line::R8, _) => self.is_r8 = true,
            (Line::Other | Line::Residual(_), _) => {}
        }
    }

    /// Sorts the members of the last class, which is complete.
    fn end_class(&mut self, text: &str) {
        let end = self.members.len();
        if let Some(class) = self.classes.last_mut() {
            class.end = end;
            if let Some(members) = self.members.get_mut(class.first..end) {
                spread_residuals(text, members);
                members.sort_by(|a, b| a.obfuscated.get(text).cmp(b.obfuscated.get(text)));
            }
        }
    }

    /// The number of invalid lines.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Returns true if R8 wrote the file. R8 leaves lines out of release builds for Android 8 and later. The file then has dex pcs instead,
    /// as in ART's stack traces.
    #[must_use]
    pub fn is_r8(&self) -> bool {
        self.is_r8
    }

    /// The original name of a class. Both names are in Java notation (`org.example.Outer$Inner`).
    #[must_use]
    pub fn class(&self, obfuscated: &str) -> Option<&str> {
        Some(self.class_of(obfuscated)?.original.get(&self.text))
    }

    fn class_of(&self, obfuscated: &str) -> Option<&Class> {
        let id = self.by_obfuscated.get(obfuscated)?;
        self.classes.get(id.index())
    }

    /// Like [`Mapping::frames_of`], for a frame whose source file is not known.
    #[must_use]
    pub fn frames(
        &self,
        class: &str,
        method: &str,
        position: Option<Position>,
        params: Option<&str>,
    ) -> Vec<Frame<'_>> {
        self.frames_of(&ObfuscatedFrame {
            class,
            method,
            position,
            params,
            file: None,
        })
    }

    /// The frames that one frame stands for, innermost first. Empty if the class is not in the file, or if the frame is
    /// ambiguous.
    ///
    /// If the mapping has no source file for a class, the file is named after the outermost class, as in R8's retrace: `Main.java`, or
    /// `Main.kt` if the frame's file has that extension, or `Math.kt` for a Kotlin facade `MathKt`.
    #[must_use]
    pub fn frames_of(&self, frame: &ObfuscatedFrame<'_>) -> Vec<Frame<'_>> {
        let mut alternatives = self.alternatives_of(frame);
        match alternatives.len() {
            1 => alternatives.pop().unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// The candidates for one frame, each with its frames innermost first. There are several if neither the position nor the parameters
    /// determine the method.
    #[must_use]
    pub fn alternatives(
        &self,
        class: &str,
        method: &str,
        position: Option<Position>,
        params: Option<&str>,
    ) -> Vec<Vec<Frame<'_>>> {
        self.alternatives_of(&ObfuscatedFrame {
            class,
            method,
            position,
            params,
            file: None,
        })
    }

    fn alternatives_of(&self, frame: &ObfuscatedFrame<'_>) -> Vec<Vec<Frame<'_>>> {
        let ObfuscatedFrame {
            method,
            position,
            params,
            ..
        } = *frame;
        let Some(class) = self.class_of(frame.class) else {
            return Vec::new();
        };
        let mut groups = self.groups(self.members_of(class, method));
        if groups.is_empty() {
            // Methods that keep their name need not be listed.
            let line = position.and_then(Position::line);
            return vec![vec![self.frame(class.original, method, line, frame.file)]];
        }
        if let Some(params) = params {
            let has_params =
                |group: &&[Member]| group.last().is_some_and(|own| self.has_params(own, params));
            // Parameters can have been removed without a residual signature. Then none match, and they are ignored.
            if groups.iter().any(has_params) {
                groups.retain(has_params);
            }
        }
        let at_position = |group: &&[Member]| {
            position.is_some_and(|position| {
                lines_match(group, |lines| contains(lines, position.number()))
            })
        };
        let anywhere = |group: &&[Member]| {
            lines_match(group, |lines| {
                lines.is_none_or(|lines| lines == (0, 0) || lines == CATCH_ALL)
            })
        };
        let mut found = Vec::new();
        if groups.iter().any(at_position) {
            let groups = groups.into_iter().filter(at_position);
            extend_unique(
                &mut found,
                groups.map(|group| self.resolve(class, group, frame)),
            );
        } else if groups.iter().any(anywhere) {
            let groups = groups.into_iter().filter(anywhere);
            extend_unique(
                &mut found,
                groups.map(|group| self.resolve(class, group, frame)),
            );
        } else {
            // The line is unknown, so the frames that were inlined there are unknown, too.
            let own = groups.into_iter().filter_map(|group| group.last());
            extend_unique(
                &mut found,
                own.map(|own| vec![self.original(class, own, None, frame.file)]),
            );
        }
        found
    }

    /// The members of a class with this obfuscated name.
    fn members_of(&self, class: &Class, method: &str) -> &[Member] {
        let members = self.members.get(class.first..class.end).unwrap_or_default();
        let name = |member: &Member| member.obfuscated.get(&self.text);
        let first = members.partition_point(|member| name(member) < method);
        let end = members.partition_point(|member| name(member) <= method);
        members.get(first..end).unwrap_or_default()
    }

    /// Groups members that were inlined into each other, innermost first.
    ///
    /// They have the same range of lines. In R8's files no other members do. In ProGuard's files other members can: there only
    /// a method that another was inlined into has a single original line.
    fn groups<'m>(&self, members: &'m [Member]) -> Vec<&'m [Member]> {
        let same_group = |one: &Member, next: &Member| {
            one.lines.is_some()
                && one.lines == next.lines
                && (self.is_r8 || matches!(next.original, Original::Line(_)))
        };
        members.chunk_by(same_group).collect()
    }

    /// Whether a method has these obfuscated parameters.
    fn has_params(&self, member: &Member, params: &str) -> bool {
        let params = params
            .split(',')
            .map(str::trim)
            .filter(|one| !one.is_empty());
        if let Some(residual) = member.residual {
            let residual = residual.get(&self.text);
            let descriptors = residual
                .strip_prefix('(')
                .and_then(|rest| rest.split_once(')'))
                .map_or("", |(descriptors, _)| descriptors);
            return types(descriptors).eq(params.map(str::to_owned));
        }
        let original = member.params.get(&self.text);
        let original = original.split(',').filter(|one| !one.is_empty());
        original.eq(params.map(|one| {
            let element = one.trim_end_matches("[]");
            let dimensions = one.strip_prefix(element).unwrap_or_default();
            let class = self.class(element).unwrap_or(element);
            format!("{class}{dimensions}")
        }))
    }

    /// The frames of a group.
    fn resolve(
        &self,
        class: &Class,
        group: &[Member],
        frame: &ObfuscatedFrame<'_>,
    ) -> Vec<Frame<'_>> {
        let is_synthesized =
            |member: &Member| member.synthesized || (class.synthesized && member.class.is_none());
        let all_synthesized = group.iter().all(is_synthesized);
        let shown = group
            .iter()
            .filter(|member| all_synthesized || !is_synthesized(member));
        shown
            .take(MAX_FRAMES)
            .map(|member| {
                let line = original_line(member, frame.position);
                self.original(class, member, line, frame.file)
            })
            .collect()
    }

    /// The frame of an original method. `file` is the source file that the dex file names.
    fn original(
        &self,
        class: &Class,
        member: &Member,
        line: Option<u32>,
        file: Option<&str>,
    ) -> Frame<'_> {
        let class = member.class.unwrap_or(class.original);
        self.frame(class, member.name.get(&self.text), line, file)
    }

    fn frame(&self, class: Span, method: &str, line: Option<u32>, file: Option<&str>) -> Frame<'_> {
        let class = class.get(&self.text);
        Frame {
            function: format!("{class}.{method}").into(),
            location: line.map(|line| Location {
                file: self.source_file(class, file),
                line,
            }),
        }
    }

    /// The source file of an original class. `obfuscated` is the one that the dex file names.
    fn source_file(&self, class: &str, obfuscated: Option<&str>) -> Cow<'_, str> {
        let noted = self
            .by_original
            .get(class)
            .and_then(|id| self.classes.get(id.index())?.source_file);
        match noted {
            Some(name) => name.get(&self.text).into(),
            None => inferred_source_file(class, obfuscated).into(),
        }
    }
}

/// The source file of an original class for which the mapping has none, by the rules of R8's retrace (`RetraceUtils`).
fn inferred_source_file(class: &str, obfuscated: Option<&str>) -> String {
    let simple = class.rsplit('.').next().unwrap_or(class);
    let outermost = simple.split('$').next().unwrap_or(simple);
    let obfuscated = obfuscated.unwrap_or_default();
    if obfuscated == "Native Method" {
        return obfuscated.to_owned();
    }
    let name = obfuscated.rsplit('/').next().unwrap_or(obfuscated);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    // Kotlin puts the top-level functions of a file into a class with the file's name and `Kt`.
    let facade = outermost.strip_suffix("Kt").filter(|of| !of.is_empty());
    match (facade, extension) {
        (Some(file), "" | "kt") => format!("{file}.kt"),
        (None, "kt") => format!("{outermost}.kt"),
        _ => format!("{outermost}.java"),
    }
}

/// Copies the residual signature, which follows the last range of a method, to all of its ranges.
fn spread_residuals(text: &str, members: &mut [Member]) {
    let method = |member: &Member| {
        (
            member.obfuscated.get(text),
            member.class.map(|class| class.get(text)),
            member.name.get(text),
            member.params.get(text),
        )
    };
    let noted: HashMap<_, _> = members
        .iter()
        .filter_map(|member| Some((method(member), member.residual?)))
        .collect();
    for member in members {
        member.residual = noted.get(&method(member)).copied();
    }
}

/// Adds the elements that are not in `found`, up to [`MAX_ALTERNATIVES`].
fn extend_unique<T: PartialEq>(found: &mut Vec<T>, more: impl Iterator<Item = T>) {
    for one in more {
        if found.len() >= MAX_ALTERNATIVES {
            break;
        }
        if !found.contains(&one) {
            found.push(one);
        }
    }
}

/// Whether the line range of a group fulfils a condition.
fn lines_match(group: &[Member], condition: impl Fn(Option<(u32, u32)>) -> bool) -> bool {
    group.first().is_some_and(|member| condition(member.lines))
}

fn contains(lines: Option<(u32, u32)>, line: u32) -> bool {
    lines.is_some_and(|(first, last)| first <= line && line <= last)
}

/// The original line of a position. A dex pc is never shown as a line.
fn original_line(member: &Member, position: Option<Position>) -> Option<u32> {
    let original = match (member.original, member.lines) {
        (Original::Same, _) => position.and_then(Position::line),
        (Original::Line(original), _) => Some(original),
        (Original::From(first, last), _) if first == last => Some(first),
        (Original::From(first, last), Some((from, to))) => {
            let as_many = last.checked_sub(first)? == to.checked_sub(from)?;
            let into = position?.number().checked_sub(from).filter(|_| as_many)?;
            first.checked_add(into)
        }
        (Original::From(..), None) => None,
    };
    original.filter(|line| *line != 0)
}

/// The types of consecutive descriptors, in Java notation.
fn types(mut descriptors: &str) -> impl Iterator<Item = String> {
    std::iter::from_fn(move || {
        let element = descriptors.trim_start_matches('[');
        let dimensions = descriptors.len().saturating_sub(element.len());
        let len = match element.as_bytes().first()? {
            b'L' => element.find(';')?.saturating_add(1),
            _ => 1,
        };
        let (one, rest) = descriptors.split_at_checked(dimensions.saturating_add(len))?;
        descriptors = rest;
        Some(type_name(one))
    })
}
