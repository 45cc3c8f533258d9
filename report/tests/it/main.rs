//! Are reports of sessions what the sessions hold?
#![allow(missing_docs)]

mod annotate;
mod common;
mod diff;
mod elsewhere;
mod exports;
mod lines;
mod live;
mod pack;
mod page;
mod sessions;
mod views;
