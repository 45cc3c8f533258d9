//! What do the ids of a profile's images and tasks stand for?

use std::{path::PathBuf, sync::Arc};

use varid_model::Layer;

use crate::services::ServiceId;

/// An image of a [`Profile`](crate::Profile).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ImageId(pub u32);

/// A task of a [`Profile`](crate::Profile).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(pub u32);

/// A file that code came from, or what stands for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The name to show: of dex files the location, of others the path without its folder.
    pub name: String,
    /// Where it was when it was recorded; none for the kernel and for markers.
    pub path: Option<PathBuf>,
    /// What its samples count for.
    pub layer: Layer,
}

/// A thread under one of its names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Task {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The name that it had when it was sampled; `:TID` if none is known.
    pub name: Arc<str>,
    /// What its process counted for then.
    pub service: Option<ServiceId>,
}
