//! System tests on this machine.

mod annotate;
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
mod diff;
mod dim;
mod elsewhere;
mod events;
mod exports;
mod held_up;
mod import;
mod jit;
#[cfg(target_arch = "x86_64")]
mod jvm;
mod kept_symbols;
mod killed;
mod layouts;
mod lines;
mod manual;
mod modes;
mod native;
mod off_cpu;
mod overrun;
mod ownership;
mod paper;
mod probes;
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
