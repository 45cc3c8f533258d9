//! Selects functions by layer and name.

use varid_model::Layer;

use crate::{frames::ProfileSymbol, name_pattern::NamePattern};

/// Conditions on a function. Both must hold. The default has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeFilter {
    /// It is in this layer.
    pub layer: Option<Layer>,
    /// It has a matching name, either the displayed or the recorded one.
    pub symbol: Option<NamePattern>,
}

impl CodeFilter {
    /// Returns true if there is no condition.
    pub(crate) const fn is_empty(&self) -> bool {
        self.layer.is_none() && self.symbol.is_none()
    }

    /// Returns true if a layer is selected.
    pub(crate) fn has_layer(&self, layer: Layer) -> bool {
        self.layer.is_none_or(|only| only == layer)
    }

    /// Returns true if a symbol is selected.
    pub(crate) fn selects(&self, symbol: &ProfileSymbol) -> bool {
        let pattern = self.symbol.as_ref();
        self.has_layer(symbol.layer) && pattern.is_none_or(|pattern| has_name(symbol, pattern))
    }

    /// Describes the conditions as on the command line.
    pub(crate) fn describe(&self) -> impl Iterator<Item = String> {
        let layer = self.layer.map(|layer| format!("--layer {}", layer.name()));
        let symbol = self.symbol.as_ref();
        let symbol = symbol.map(|pattern| format!("--symbol {}", pattern.text()));
        layer.into_iter().chain(symbol)
    }
}

/// Returns true if the displayed or the recorded name of a symbol matches, with or without its signature.
pub(crate) fn has_name(symbol: &ProfileSymbol, pattern: &NamePattern) -> bool {
    let recorded = symbol.recorded.as_deref();
    let mut names = [Some(symbol.plain_name()), recorded].into_iter().flatten();
    names.any(|name| pattern.matches(name)) || pattern.matches(&symbol.full_name())
}
