//! Does the whole system do on this machine what it promises?

mod areas;
mod attribution;
mod callgraph;
mod calls;
mod command_line;
mod configuration;
mod containers;
mod device;
mod dexdump;
mod dim;
mod elsewhere;
mod events;
mod jit;
mod killed;
mod lines;
mod native;
mod overrun;
mod ownership;
mod paper;
mod readers;
mod reread;
mod shares;
mod substitutes;
mod unseen;
mod unwinding;
mod withstands;
