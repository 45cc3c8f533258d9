//! The fuzz targets, one for each parser of untrusted data.

mod call_order;
mod calls;
mod class;
mod code_info;
mod compact;
mod compiled_code;
mod compressed;
mod configuration;
mod container;
mod contexts;
mod control;
mod demangle;
mod dex;
mod elf;
mod gdb_jit;
mod import_jfr;
mod import_perf_data;
mod import_text;
mod instrument;
mod instrument_dex;
mod jitdump;
mod jvm;
mod kernel;
mod layout;
mod lines;
mod machine;
mod nmethod;
mod oat_file;
mod perf_map;
mod processor;
mod record;
mod report;
mod retrace;
mod riscv;
mod session;
mod substitute;
mod translate;
mod tunnel;
mod walk;

/// A function that passes one input to a parser. It panics, aborts or runs for long if the parser has a defect.
pub type Target = fn(&[u8]);

/// Every target, by name. Its seeds are in `seeds/NAME`.
pub const TARGETS: [(&str, Target); 39] = [
    ("call_order", call_order::fuzz),
    ("calls", calls::fuzz),
    ("class", class::fuzz),
    ("code_info", code_info::fuzz),
    ("compact", compact::fuzz),
    ("compiled_code", compiled_code::fuzz),
    ("compressed", compressed::fuzz),
    ("configuration", configuration::fuzz),
    ("container", container::fuzz),
    ("contexts", contexts::fuzz),
    ("control", control::fuzz),
    ("demangle", demangle::fuzz),
    ("dex", dex::fuzz),
    ("elf", elf::fuzz),
    ("gdb_jit", gdb_jit::fuzz),
    ("import_jfr", import_jfr::fuzz),
    ("import_perf_data", import_perf_data::fuzz),
    ("import_text", import_text::fuzz),
    ("instrument", instrument::fuzz),
    ("instrument_dex", instrument_dex::fuzz),
    ("jitdump", jitdump::fuzz),
    ("jvm", jvm::fuzz),
    ("kernel", kernel::fuzz),
    ("layout", layout::fuzz),
    ("lines", lines::fuzz),
    ("machine", machine::fuzz),
    ("nmethod", nmethod::fuzz),
    ("oat_file", oat_file::fuzz),
    ("perf_map", perf_map::fuzz),
    ("processor", processor::fuzz),
    ("record", record::fuzz),
    ("report", report::fuzz),
    ("retrace", retrace::fuzz),
    ("riscv", riscv::fuzz),
    ("session", session::fuzz),
    ("substitute", substitute::fuzz),
    ("translate", translate::fuzz),
    ("tunnel", tunnel::fuzz),
    ("walk", walk::fuzz),
];

/// Returns the target of this name.
pub fn find(name: &str) -> Option<Target> {
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    found.map(|(_, target)| *target)
}
