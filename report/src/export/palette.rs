//! The colours of layers in pages, pictures, call graphs and the Firefox Profiler.
//!
//! The colours differ by at least 18 (CIE76) with normal vision, deuteranopia, protanopia and tritanopia. Black text
//! has a contrast of 4.5 on all.

use varid_model::Layer;

/// The colours of a layer in the notation of each viewer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayerColours {
    /// On a light page.
    pub light: &'static str,
    /// On a dark page.
    pub dark: &'static str,
    /// The nearest colour name of the Firefox Profiler.
    pub firefox: &'static str,
}

/// The colours of a layer.
pub(crate) const fn colours(layer: Layer) -> LayerColours {
    let (light, dark, firefox) = match layer {
        Layer::App => ("#6399f1", "#5f94ef", "blue"),
        Layer::Framework => ("#ccd8e8", "#9db0da", "lightblue"),
        Layer::Vm => ("#f1cb46", "#e6ae52", "yellow"),
        Layer::Native => ("#78d7a4", "#93d9b9", "green"),
        Layer::Kernel => ("#e6755d", "#d37460", "red"),
    };
    LayerColours {
        light,
        dark,
        firefox,
    }
}

/// Makes a style sheet with a rule for each layer, for light and for dark pages. `rule` gets the layer's name and its
/// colour.
pub(super) fn style_sheet(rule: impl Fn(&str, &str) -> String) -> String {
    let rules = |colour: fn(LayerColours) -> &'static str| -> String {
        let layers = Layer::ALL.into_iter();
        let rules = layers.map(|layer| rule(layer.name(), colour(colours(layer))));
        rules.collect()
    };
    let (light, dark) = (rules(|of| of.light), rules(|of| of.dark));
    format!("{light}@media (prefers-color-scheme: dark) {{\n{dark}}}\n")
}
