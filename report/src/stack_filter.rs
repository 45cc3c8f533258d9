//! Selects samples by the functions on their stacks.

use crate::{
    code_filter::{CodeFilter, has_name},
    frames::FrameId,
    name_pattern::NamePattern,
    naming::Resolver,
};

/// Conditions on the stack of a sample. All must hold. The default has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackFilter {
    /// Some function on the stack, or its image, has a matching name.
    pub focus: Option<NamePattern>,
    /// No function on the stack, and no image of one, has a matching name.
    pub ignore: Option<NamePattern>,
    /// The leaf is one of these functions.
    pub leaf: CodeFilter,
}

impl StackFilter {
    /// Describes the conditions as on the command line.
    pub(crate) fn describe(&self) -> Vec<String> {
        let pattern = |option: &str, pattern: &Option<NamePattern>| {
            let pattern = pattern.as_ref()?;
            Some(format!("{option} {}", pattern.text()))
        };
        let anywhere = [
            pattern("--focus", &self.focus),
            pattern("--ignore", &self.ignore),
        ];
        let anywhere = anywhere.into_iter().flatten();
        anywhere.chain(self.leaf.describe()).collect()
    }
}

/// An option that filters stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StackOption {
    Ignore,
    Focus,
    Layer,
    Symbol,
}

impl StackOption {
    /// Returns the name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ignore => "--ignore",
            Self::Focus => "--focus",
            Self::Layer => "--layer",
            Self::Symbol => "--symbol",
        }
    }
}

/// Evaluates the conditions. Each symbol is matched against the patterns only once.
#[derive(Debug)]
pub(crate) struct StackSelector {
    filter: StackFilter,
    /// By [`SymbolId`](crate::frames::SymbolId). None if not matched yet.
    symbols: Vec<Option<Matches>>,
}

/// Match results of a symbol.
#[derive(Debug, Clone, Copy, Default)]
struct Matches {
    focus: bool,
    ignore: bool,
    symbol: bool,
    layer: bool,
}

impl StackSelector {
    pub fn new(filter: StackFilter) -> Self {
        Self {
            filter,
            symbols: Vec::new(),
        }
    }

    /// Returns true if there is any condition.
    pub fn is_active(&self) -> bool {
        self.filter != StackFilter::default()
    }

    /// Returns the option that excludes a sample with these frames, leaf first. None if it is selected.
    pub fn excluded_by(&mut self, frames: &[FrameId], resolver: &Resolver) -> Option<StackOption> {
        if !self.is_active() {
            return None;
        }
        let leaf = frames.first().copied();
        let leaf = leaf.map_or_else(Matches::default, |leaf| self.matches(leaf, resolver));
        let (mut focus, mut ignore) = (false, false);
        for frame in frames {
            let matches = self.matches(*frame, resolver);
            focus |= matches.focus;
            ignore |= matches.ignore;
        }
        let filter = &self.filter;
        let reasons = [
            (StackOption::Ignore, filter.ignore.is_some() && ignore),
            (StackOption::Focus, filter.focus.is_some() && !focus),
            (
                StackOption::Layer,
                filter.leaf.layer.is_some() && !leaf.layer,
            ),
            (
                StackOption::Symbol,
                filter.leaf.symbol.is_some() && !leaf.symbol,
            ),
        ];
        let reason = reasons.into_iter().find(|(_, excludes)| *excludes);
        reason.map(|(option, _)| option)
    }

    fn matches(&mut self, frame: FrameId, resolver: &Resolver) -> Matches {
        let Some((symbol, frame)) = resolver.frame(frame) else {
            return Matches::default();
        };
        let place = frame.symbol.index();
        if let Some(Some(known)) = self.symbols.get(place) {
            return *known;
        }
        let image = resolver
            .image(symbol.image)
            .map(|image| image.name.as_str());
        let anywhere = |pattern: &Option<NamePattern>| {
            pattern.as_ref().is_some_and(|pattern| {
                has_name(symbol, pattern) || image.is_some_and(|name| pattern.matches(name))
            })
        };
        let leaf = self.filter.leaf.symbol.as_ref();
        let found = Matches {
            focus: anywhere(&self.filter.focus),
            ignore: anywhere(&self.filter.ignore),
            symbol: leaf.is_some_and(|pattern| has_name(symbol, pattern)),
            layer: self.filter.leaf.layer == Some(symbol.layer),
        };
        if self.symbols.len() <= place {
            self.symbols.resize(place.saturating_add(1), None);
        }
        if let Some(slot) = self.symbols.get_mut(place) {
            *slot = Some(found);
        }
        found
    }
}
