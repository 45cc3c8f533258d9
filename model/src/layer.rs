//! The layers of a vertical profile: app, VM, kernel and so on.

use serde::{Deserialize, Serialize};

/// The layers of a vertical profile, from the user's own code down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// Managed code outside the VM's boot class path.
    App,
    /// Managed code of the VM's boot class path.
    Framework,
    /// The VM's own libraries.
    Vm,
    /// Other user code.
    Native,
    /// The kernel and its modules.
    Kernel,
}

impl Layer {
    /// Every layer, from the user's own code down.
    pub const ALL: [Self; 5] = [
        Self::App,
        Self::Framework,
        Self::Vm,
        Self::Native,
        Self::Kernel,
    ];

    /// Its index in [`ALL`](Self::ALL).
    #[must_use]
    pub const fn place(self) -> usize {
        self as usize
    }

    /// The name that manifests and reports use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::App => "app",
            Self::Framework => "framework",
            Self::Vm => "vm",
            Self::Native => "native",
            Self::Kernel => "kernel",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Layer;

    #[test]
    fn every_layer_is_at_its_place_among_all() {
        for (place, layer) in Layer::ALL.into_iter().enumerate() {
            assert_eq!(layer.place(), place, "{layer:?}");
        }
    }
}
