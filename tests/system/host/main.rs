//! Does the whole system do on this machine what it promises?

mod areas;
mod attribution;
mod callgraph;
mod calls;
#[cfg(target_arch = "x86_64")]
mod command_line;
mod configuration;
mod containers;
mod device;
mod dexdump;
mod dim;
mod elsewhere;
mod events;
mod exports;
mod held_up;
mod jit;
mod killed;
mod layouts;
mod lines;
mod native;
mod overrun;
mod ownership;
mod paper;
mod readers;
mod reread;
mod sandbox;
mod shares;
mod stackvm;
mod substitutes;
mod terminal;
mod top;
mod tree;
mod unseen;
mod unwinding;
mod withstands;
