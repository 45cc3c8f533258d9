//! What was this class, method and line called before R8 or ProGuard renamed and inlined it?
//!
//! [`Mapping`] is the `mapping.txt` that they write. One obfuscated frame may stand for several of the source: what
//! was inlined, innermost first. It may also stand for different methods, where nothing tells which; then
//! [`Mapping::frames`] says nothing, and [`Mapping::alternatives`] all that it may be: a name is never guessed.
//!
//! Understood are class, method and line ranges with inlined frames, overloads by their parameters (those that they
//! have now, where R8 notes that they have changed), source files, and methods that the compiler made, which are left
//! out where they only lead to others. An outlined method keeps the name that R8 gave it, and its caller's line is
//! unknown: which of its callers' lines it was cut from depends on the pair of frames.
//!
//! The format: ProGuard's manual, "retrace", and R8's `doc/retrace.md`. ProGuard's own retrace agrees with what is
//! read here of what ProGuard wrote. R8's notes have been compared with their documentation only.

mod text;

use crate::dex::type_name;
use crate::{Error, Frame, Location, Result};
use std::borrow::Cow;
use std::collections::HashMap;
use text::{Line, Member, Original, Span};

/// Inlined frames of one, and different methods that one may be: more are not told.
const MAX_FRAMES: usize = 256;
const MAX_ALTERNATIVES: usize = 64;
/// R8's range of a method all of whose lines are one.
const CATCH_ALL: (u32, u32) = (0, 65535);

/// Where in a method a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At a line, as the dex file's debug information says.
    Line(u32),
    /// At a dex pc, in code units from the method's first instruction: R8 counts lines by it where it leaves them out.
    Pc(u32),
}

impl Place {
    /// What the mapping's ranges count.
    fn number(self) -> u32 {
        match self {
            Self::Line(number) | Self::Pc(number) => number,
        }
    }

    /// The line, if it is one.
    fn line(self) -> Option<u32> {
        match self {
            Self::Line(line) => Some(line),
            Self::Pc(_) => None,
        }
    }
}

/// A mapping file, read.
#[derive(Debug, Clone, Default)]
pub struct Mapping {
    text: String,
    classes: Vec<Class>,
    /// By class, then by obfuscated name; in the file's order beyond that.
    members: Vec<Member>,
    by_obfuscated: HashMap<Box<str>, u32>,
    by_original: HashMap<Box<str>, u32>,
    skipped: usize,
    is_r8: bool,
}

#[derive(Debug, Clone, Copy)]
struct Class {
    original: Span,
    source_file: Option<Span>,
    synthesized: bool,
    /// Of its members, in all members.
    first: usize,
    end: usize,
}

impl Mapping {
    /// Reads a mapping file. Lines that make no sense are skipped and counted.
    ///
    /// Takes a small multiple of the file's size in memory.
    ///
    /// # Errors
    /// [`Error::Mapping`] if there is no class in it, or it is larger than 1 GB.
    pub fn parse(bytes: Vec<u8>) -> Result<Self> {
        const MAX_SIZE: usize = 1 << 30;
        let bad = |line, problem| Err(Error::Mapping { line, problem });
        if bytes.len() > MAX_SIZE {
            return bad(1, "more than 1 GB are not read");
        }
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let mut mapping = Self::default();
        // Whether a note is about the last method, or the class before its first one.
        let mut after_method = false;
        for line in text.lines() {
            let Some(read) = Line::read(&text, line) else {
                mapping.skipped = mapping.skipped.saturating_add(1);
                continue;
            };
            if let Line::Class { .. } | Line::Method(_) = read {
                after_method = matches!(read, Line::Method(_));
            }
            mapping.take_in(&text, read, after_method);
        }
        mapping.end_class(&text);
        if mapping.classes.is_empty() {
            return bad(1, "no line says what a class was called");
        }
        mapping.text = text;
        Ok(mapping)
    }

    fn take_in(&mut self, text: &str, line: Line, after_method: bool) {
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
                let index = u32::try_from(self.classes.len()).unwrap_or(u32::MAX);
                // The first one counts, should there be two.
                self.by_obfuscated
                    .entry(obfuscated.get(text).into())
                    .or_insert(index);
                self.by_original
                    .entry(original.get(text).into())
                    .or_insert(index);
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

    /// The last class has all its members.
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

    /// Number of lines that made no sense.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// What a class was called; both in Java notation (`org.example.Outer$Inner`).
    #[must_use]
    pub fn class(&self, obfuscated: &str) -> Option<&str> {
        Some(self.class_of(obfuscated)?.original.get(&self.text))
    }

    fn class_of(&self, obfuscated: &str) -> Option<&Class> {
        let index = self.by_obfuscated.get(obfuscated)?;
        self.classes.get(*index as usize)
    }

    /// The frames that one frame stands for, innermost first; none: the class is not in the file, or it may be
    /// several methods.
    ///
    /// `class`, `method`: as they are called now, in Java notation. `place`: the line, or the dex pc where the dex file
    /// has none and R8 wrote the mapping. `params`: the method's parameter types now, separated by commas, where it is known.
    ///
    /// A class whose source file the mapping does not name is said to be in one of its outermost class's name.
    #[must_use]
    pub fn frames(
        &self,
        class: &str,
        method: &str,
        place: Option<Place>,
        params: Option<&str>,
    ) -> Vec<Frame<'_>> {
        let mut alternatives = self.alternatives(class, method, place, params);
        match alternatives.len() {
            1 => alternatives.pop().unwrap_or_default(),
            _ => Vec::new(),
        }
    }

    /// All that one frame may stand for, each innermost first: more than one where neither line nor parameters tell
    /// which of several methods it is.
    #[must_use]
    pub fn alternatives(
        &self,
        class: &str,
        method: &str,
        place: Option<Place>,
        params: Option<&str>,
    ) -> Vec<Vec<Frame<'_>>> {
        let Some(class) = self.class_of(class) else {
            return Vec::new();
        };
        let mut groups = self.groups(self.members_of(class, method));
        if groups.is_empty() {
            // What keeps its name need not be listed.
            return vec![vec![self.frame(
                class.original,
                method,
                place.and_then(Place::line),
            )]];
        }
        if let Some(params) = params {
            let declared =
                |group: &&[Member]| group.last().is_some_and(|own| self.has_params(own, params));
            // Parameters may have been removed without a note: then they tell nothing.
            if groups.iter().any(declared) {
                groups.retain(declared);
            }
        }
        let at_line = |group: &&[Member]| {
            place.is_some_and(|place| holds(group, |lines| contains(lines, place.number())))
        };
        let anywhere = |group: &&[Member]| {
            holds(group, |lines| {
                lines.is_none_or(|lines| lines == (0, 0) || lines == CATCH_ALL)
            })
        };
        let mut found = Vec::new();
        if groups.iter().any(at_line) {
            let groups = groups.into_iter().filter(at_line);
            collect(
                &mut found,
                groups.map(|group| self.resolve(class, group, place)),
            );
        } else if groups.iter().any(anywhere) {
            let groups = groups.into_iter().filter(anywhere);
            collect(
                &mut found,
                groups.map(|group| self.resolve(class, group, place)),
            );
        } else {
            // Some line of it: what has been inlined there is not known.
            let own = groups.into_iter().filter_map(|group| group.last());
            collect(
                &mut found,
                own.map(|own| vec![self.original(class, own, None)]),
            );
        }
        found
    }

    /// What a class's method may come from.
    fn members_of(&self, class: &Class, method: &str) -> &[Member] {
        let members = self.members.get(class.first..class.end).unwrap_or_default();
        let name = |member: &Member| member.obfuscated.get(&self.text);
        let first = members.partition_point(|member| name(member) < method);
        let end = members.partition_point(|member| name(member) <= method);
        members.get(first..end).unwrap_or_default()
    }

    /// Those that were inlined into each other together, innermost first.
    ///
    /// R8 gives every other line a number of its own. ProGuard does not; but only of a method that another was
    /// inlined into it names one line.
    fn groups<'m>(&self, members: &'m [Member]) -> Vec<&'m [Member]> {
        let belong = |one: &Member, next: &Member| {
            one.lines.is_some()
                && one.lines == next.lines
                && (self.is_r8 || matches!(next.original, Original::Line(_)))
        };
        members.chunk_by(belong).collect()
    }

    /// Whether a method has these parameters now.
    fn has_params(&self, member: &Member, now: &str) -> bool {
        let now = now.split(',').map(str::trim).filter(|one| !one.is_empty());
        if let Some(residual) = member.residual {
            let residual = residual.get(&self.text);
            let descriptors = residual
                .strip_prefix('(')
                .and_then(|rest| rest.split_once(')'))
                .map_or("", |(descriptors, _)| descriptors);
            return types(descriptors).eq(now.map(str::to_owned));
        }
        let original = member.params.get(&self.text);
        let original = original.split(',').filter(|one| !one.is_empty());
        original.eq(now.map(|one| {
            let element = one.trim_end_matches("[]");
            let dimensions = one.strip_prefix(element).unwrap_or_default();
            let class = self.class(element).unwrap_or(element);
            format!("{class}{dimensions}")
        }))
    }

    /// The frames of a group.
    fn resolve(&self, class: &Class, group: &[Member], place: Option<Place>) -> Vec<Frame<'_>> {
        let made =
            |member: &Member| member.synthesized || (class.synthesized && member.class.is_none());
        let all_made = group.iter().all(made);
        let shown = group.iter().filter(|member| all_made || !made(member));
        shown
            .take(MAX_FRAMES)
            .map(|member| self.original(class, member, original_line(member, place)))
            .collect()
    }

    /// A method of the source, at a line of it.
    fn original(&self, class: &Class, member: &Member, line: Option<u32>) -> Frame<'_> {
        let class = member.class.unwrap_or(class.original);
        self.frame(class, member.name.get(&self.text), line)
    }

    fn frame(&self, class: Span, method: &str, line: Option<u32>) -> Frame<'_> {
        let class = class.get(&self.text);
        Frame {
            function: format!("{class}.{method}").into(),
            location: line.map(|line| Location {
                file: self.source_file(class),
                line,
            }),
        }
    }

    fn source_file(&self, class: &str) -> Cow<'_, str> {
        let noted = self
            .by_original
            .get(class)
            .and_then(|index| self.classes.get(*index as usize)?.source_file);
        match noted {
            Some(name) => name.get(&self.text).into(),
            None => {
                let simple = class.rsplit('.').next().unwrap_or(class);
                let outermost = simple.split('$').next().unwrap_or(simple);
                format!("{outermost}.java").into()
            }
        }
    }
}

/// A method's parameters are noted behind the last of its ranges; they are those of all.
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

/// Adds what is not there yet, up to a bound.
fn collect<T: PartialEq>(found: &mut Vec<T>, more: impl Iterator<Item = T>) {
    for one in more {
        if found.len() >= MAX_ALTERNATIVES {
            break;
        }
        if !found.contains(&one) {
            found.push(one);
        }
    }
}

fn holds(group: &[Member], condition: impl Fn(Option<(u32, u32)>) -> bool) -> bool {
    group.first().is_some_and(|member| condition(member.lines))
}

fn contains(lines: Option<(u32, u32)>, line: u32) -> bool {
    lines.is_some_and(|(first, last)| first <= line && line <= last)
}

/// The line in the source that a place in an obfuscated class comes from; a dex pc is never taken for one.
fn original_line(member: &Member, place: Option<Place>) -> Option<u32> {
    let original = match (member.original, member.lines) {
        (Original::Same, _) => place.and_then(Place::line),
        (Original::Line(original), _) => Some(original),
        (Original::From(first, last), _) if first == last => Some(first),
        (Original::From(first, last), Some((from, to))) => {
            let as_many = last.checked_sub(first)? == to.checked_sub(from)?;
            let into = place?.number().checked_sub(from).filter(|_| as_many)?;
            first.checked_add(into)
        }
        (Original::From(..), None) => None,
    };
    original.filter(|line| *line != 0)
}

/// The types that descriptors, one after the other, stand for, in Java's notation.
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
