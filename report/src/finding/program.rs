//! Determines the kind of program in a profile, and its own code.

use varid_model::{Layer, Marker};
use varid_recording::ImageKind;

use super::MIN_PERCENT;
use crate::{
    activity::{Activities, Activity},
    frames::{ProfileImage, ProfileSymbol, SymbolId},
    naming::{MARKERS, UNNAMED_JIT, is_library},
    profile::Profile,
    scope::Scope,
    weights::Weight,
};

/// The kind of program in a profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Program {
    /// An app whose methods are in dex files.
    Dex,
    /// A program of another runtime with named methods: HotSpot, V8, CPython.
    Managed,
    /// Machine code only.
    #[default]
    Native,
}

impl Program {
    pub fn of(scope: &Scope) -> Self {
        let profile = scope.profile;
        let listed = &profile.recording.manifest.images;
        let is_dex = listed.iter().any(|image| image.kind == ImageKind::Dex);
        let images = profile.frames.images().iter();
        // Imported recordings have other kinds of files.
        let is_art = |image: &ProfileImage| {
            let vms = ["libart.so", "libartd.so", "libdvm.so"];
            vms.iter().any(|vm| image.name.starts_with(vm))
        };
        if is_dex || images.clone().any(is_art) {
            return Self::Dex;
        }
        let method = |frame| {
            let symbol = profile.frames.symbol_of(frame)?;
            Self::Managed.owns(profile, symbol).then_some(())
        };
        let methods = scope.weights.by_frame(method);
        let methods = methods.get(&()).map(|share| scope.percent(share.total));
        // With a smaller share, no sentence could name a method or another activity.
        let is_named = |percent| percent >= MIN_PERCENT;
        match methods.is_some_and(is_named) || is_named(Self::percent_of_jvm(scope)) {
            true => Self::Managed,
            false => Self::Native,
        }
    }

    /// Returns the percentage of samples in which a JVM did other work than executing its program.
    fn percent_of_jvm(scope: &Scope) -> f64 {
        let activities = Activities::new(scope.profile);
        let mut work = Weight::default();
        for row in scope.profile.weights.rows(&scope.measures.counters()) {
            if activities.of(row.task, row.stack) != Activity::Program {
                work.add(row.weight);
            }
        }
        scope.percent(work)
    }

    /// Returns the layer of its own functions.
    pub const fn layer(self) -> Layer {
        match self {
            Self::Dex | Self::Managed => Layer::App,
            Self::Native => Layer::Native,
        }
    }

    /// Returns true if a function is the program's own: a method of the app or, in machine code, a function outside
    /// libraries.
    pub fn owns(self, profile: &Profile, symbol: &ProfileSymbol) -> bool {
        let image = profile.frames.image(symbol.image);
        let Some(image) = image.filter(|image| is_code(image)) else {
            return false;
        };
        match self {
            Self::Dex | Self::Managed => symbol.layer == Layer::App,
            Self::Native => {
                symbol.layer == Layer::Native
                    && symbol.marker.is_none()
                    && image.path.is_some()
                    && !is_library(&image.name)
                    && !image.name.starts_with('[')
            }
        }
    }

    /// By stack: the program's own innermost function.
    pub fn own_callers(self, profile: &Profile) -> Vec<Option<SymbolId>> {
        let owned: Vec<bool> = (profile.frames.symbols().iter())
            .map(|symbol| symbol.named && self.owns(profile, symbol))
            .collect();
        let is_own = |id: &SymbolId| owned.get(id.index()).copied() == Some(true);
        let mut callers: Vec<Option<SymbolId>> = Vec::with_capacity(profile.stacks.len());
        // Parents precede their children.
        for stack in profile.stacks.ids() {
            let frame = profile.stacks.frame(stack);
            let id = frame.and_then(|frame| Some(profile.frames.frame(frame)?.symbol));
            let parent = profile.stacks.parent(stack);
            let above = parent.and_then(|parent| callers.get(parent.index()).copied().flatten());
            callers.push(id.filter(is_own).or(above));
        }
        callers
    }
}

/// Returns true if an image is known code.
pub fn is_code(image: &ProfileImage) -> bool {
    let unknown = [MARKERS, UNNAMED_JIT, "[unknown]"];
    // Frames of an imported recording that does not specify layers.
    let is_native = image.layer == Layer::Native && image.name == Marker::Native.symbol();
    !unknown.contains(&image.name.as_str()) && !is_native
}
