//! The daemon, and the protocol of its clients.
//!
//! | question | file |
//! |---|---|
//! | what do client and daemon say to each other | [`protocol`] |
//! | which clients are served, and how are they bounded | [`server`] |
//! | which sessions run, how do they begin and end | [`registry`] |
//! | how does a client send a request | [`client`] |
//! | how is it brought up where none runs | [`bring_up`] |
//! | which sessions run outside of it, and which one is meant | [`running`] |
//! | where is its socket, and who can reach it | [`runtime`] |
//! | what can go wrong | [`error`] |

pub mod bring_up;
pub mod client;
pub mod error;
pub mod protocol;
pub mod registry;
pub mod running;
mod runtime;
pub mod server;

pub use error::ControlError;
