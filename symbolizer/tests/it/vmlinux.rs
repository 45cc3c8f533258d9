//! Tests that the kernel's source lines and inlined functions are found at any load address.
//!
//! The fixture's kernel is a program with a few functions, linked at a kernel's address. `VARID_VMLINUX=FILE` tests a real kernel's file
//! instead.

use std::path::{Path, PathBuf};
use std::process::Command;

use varid_symbolizer::Error;
use varid_symbolizer::elf::{DebugFiles, ElfSymbols};
use varid_symbolizer::kernel::{TextSymbol, Vmlinux};

const SOURCE: &str = "\
static inline __attribute__((always_inline)) long twice(volatile long *x)
{
    return *x * 2;
}
static inline __attribute__((always_inline)) long four_times(volatile long *x)
{
    return twice(x) + twice(x);
}
volatile long counter;
long do_work(long n)
{
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += four_times(&counter);
    return sum;
}
void _start(void)
{
    counter = do_work(3);
}
";

/// The address at which the fixture's kernel is linked, and the load address in one boot.
const LINKED: u64 = 0xffff_ffff_8100_0000;
const LOADED: u64 = 0xffff_ffff_9e20_0000;

/// Compiles the fixture.
fn fixture(folder: &Path) -> PathBuf {
    let (source, file) = (folder.join("kernel.c"), folder.join("vmlinux"));
    std::fs::write(&source, SOURCE).unwrap();
    let status = Command::new("cc")
        .args([
            "-O2",
            "-g",
            "-ffreestanding",
            "-fno-pie",
            "-nostdlib",
            "-static",
            "-no-pie",
        ])
        .args([
            "-Wl,--build-id=sha1",
            "-Wl,-Ttext-segment=0xffffffff80fff000",
        ])
        .args([
            "-mcmodel=kernel",
            "-Wl,--section-start=.text=0xffffffff81000000",
        ])
        .args(["-Wl,--defsym=_text=0xffffffff81000000", "-o"])
        .args([&file, &source])
        .status()
        .expect("cc");
    assert!(status.success());
    file
}

/// The output of addr2line: function and line, innermost first.
fn by_addr2line(file: &Path, addresses: &[u64]) -> Vec<Vec<(String, String)>> {
    let mut all = Vec::new();
    for some in addresses.chunks(1000) {
        let output = Command::new("addr2line")
            .args(["-afie"])
            .arg(file)
            .args(some.iter().map(|address| format!("{address:#x}")))
            .output()
            .expect("addr2line");
        let text = String::from_utf8(output.stdout).unwrap();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line.starts_with("0x") {
                all.push(Vec::new());
                continue;
            }
            let place = lines.next().unwrap();
            let place = place.split(" (discriminator").next().unwrap();
            all.last_mut()
                .unwrap()
                .push((line.to_owned(), place.to_owned()));
        }
    }
    assert_eq!(all.len(), addresses.len());
    all
}

/// Where a kernel had its code.
fn at(name: &str, address: u64) -> TextSymbol<'_> {
    TextSymbol { name, address }
}

fn frames(vmlinux: &Vmlinux, address: u64) -> Vec<(String, String)> {
    let shown = |frame: varid_symbolizer::Frame<'_>| {
        let place = frame
            .location
            .map_or("??:?".to_owned(), |at| format!("{}:{}", at.file, at.line));
        (frame.function.into_owned(), place)
    };
    vmlinux.frames(address).into_iter().map(shown).collect()
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the fixture is linked for x86-64"
)]
fn lines_and_inlined_functions_are_those_of_addr2line_wherever_the_kernel_was_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let real = std::env::var_os("VARID_VMLINUX").map(PathBuf::from);
    let file = real.clone().unwrap_or_else(|| fixture(folder.path()));
    let symbols = ElfSymbols::open(&file).unwrap();
    let build_id = symbols.build_id().unwrap().to_vec();
    let text = at("_text", LOADED);
    let vmlinux = Vmlinux::open(&file, &build_id, text, &DebugFiles::none()).unwrap();
    assert_eq!(vmlinux.moved_by(), LOADED - LINKED);

    // All bytes of the fixture's functions. For a real kernel, addresses spread over the whole text.
    let step = if real.is_some() { 9973 } else { 1 };
    let end = if real.is_some() {
        LINKED + (12 << 20)
    } else {
        LINKED + 0x200
    };
    let addresses: Vec<u64> = (LINKED..end)
        .step_by(step)
        .filter(|address| {
            let found = symbols.lookup(*address);
            found.is_some_and(|found| !found.raw.contains('+'))
        })
        .collect();
    let expected = by_addr2line(&file, &addresses);
    let mut inlined = 0;
    let mut different = Vec::new();
    for (address, expected) in addresses.iter().zip(&expected) {
        let found = frames(&vmlinux, address + (LOADED - LINKED));
        inlined += usize::from(found.len() > 1);
        if found != *expected {
            different.push(format!("{address:#x}: {found:?}, addr2line {expected:?}"));
        }
    }
    println!(
        "{} addresses, {inlined} in inlined functions, {} differ",
        addresses.len(),
        different.len()
    );
    assert!(addresses.len() > 20 && inlined > 0);
    if real.is_some() {
        different.iter().for_each(|line| println!("{line}"));
    } else {
        assert_eq!(different, Vec::<String>::new());
    }
    assert_eq!(
        frames(&vmlinux, 0xffff_ffff_c020_1000),
        [],
        "a module is not the kernel's own"
    );
    assert_eq!(frames(&vmlinux, 0), []);
}

#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "the fixture is linked for x86-64"
)]
fn another_kernels_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = fixture(folder.path());
    let build_id = ElfSymbols::open(&file)
        .unwrap()
        .build_id()
        .unwrap()
        .to_vec();
    let none = DebugFiles::none();
    let open = |build_id: &[u8], text| Vmlinux::open(&file, build_id, text, &none);
    assert!(matches!(
        open(&[1; 20], at("_text", LOADED)),
        Err(Error::Elf {
            part: "build-id",
            ..
        })
    ));
    assert!(matches!(
        open(&build_id, at("_stext", LOADED)),
        Err(Error::Elf { .. })
    ));
    assert!(matches!(
        open(&build_id, at("_text", LOADED + 8)),
        Err(Error::Elf { .. })
    ));
    assert!(matches!(
        open(&build_id, at("_text", 0)),
        Err(Error::KernelHidden)
    ));

    // In a symbol folder, it is found only by its build-id.
    let folders = DebugFiles::none().with_folder(folder.path());
    let found = Vmlinux::find("6.1/../..", &build_id, at("_text", LOADED), &folders).unwrap();
    assert!(found.is_some());
    let other = Vmlinux::find("", &[1; 20], at("_text", LOADED), &folders).unwrap();
    assert!(other.is_none());
}
