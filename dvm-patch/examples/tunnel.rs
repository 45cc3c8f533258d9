//! Prints what the VM of a running process publishes: `tunnel PID`

use varid_tunnel::layout::validate_layout;
use varid_tunnel::reader::read_tunnel;
use varid_tunnel::{ProcessMemory, abi};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid: u32 = std::env::args()
        .nth(1)
        .ok_or("usage: tunnel PID")?
        .parse()?;
    let memory = ProcessMemory::new(varid_model::Pid::new(pid));
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    for line in maps.lines().filter(|line| line.contains(abi::NAME)) {
        let (start, end) = line
            .split_whitespace()
            .next()
            .and_then(|range| range.split_once('-'))
            .ok_or("a map without addresses")?;
        let start = u64::from_str_radix(start, 16)?;
        let len = u64::from_str_radix(end, 16)?.saturating_sub(start);
        println!("{line}");
        let description = read_tunnel(&memory, start, len, varid_model::Pid::new(pid))?;
        println!("{description:#x?}");
        println!(
            "threads confirmed: {}",
            validate_layout(&description, &memory)?
        );
    }
    Ok(())
}
