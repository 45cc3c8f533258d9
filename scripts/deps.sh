#!/bin/sh
# What does this machine lack to build, test and demonstrate varid? Installs it, saying what and why.
# usage: deps.sh [--test]        --test: also what only tests, lint and benchmarks need
#        deps.sh --long          also what only the long tests need
#        deps.sh --compiler      also what builds ART's compiler
#        deps.sh --list          prints the packages of a run without options, installs nothing
# Does nothing, and says nothing, when everything is there. Needs Debian 12 and rustup; apt as root or by sudo.
set -eu

for_tests=
for_compiler=
for_long=
list=
case "${1:-}" in
'') ;;
--test) for_tests=1 for_compiler=1 ;;
--long) for_tests=1 for_compiler=1 for_long=1 ;;
--compiler) for_compiler=1 ;;
--list) list=1 ;;
*) echo "usage: deps.sh [--test | --long | --compiler | --list]" >&2; exit 2 ;;
esac

missing=
want() { # PACKAGE WHY: the package is wanted
    if [ -n "$list" ]; then
        echo "$1"
        return
    fi
    if [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" != installed ]; then
        echo "deps: $1 is missing: $2"
        missing="$missing $1"
    fi
}

apt() { # ARGUMENT...: apt-get as root
    if [ "$(id -u)" -eq 0 ]; then
        DEBIAN_FRONTEND=noninteractive apt-get -q "$@"
    elif command -v sudo >/dev/null; then
        sudo DEBIAN_FRONTEND=noninteractive apt-get -q "$@"
    else
        echo "deps: neither root nor sudo: as root, run apt-get install$missing" >&2
        exit 1
    fi
}

if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
    want gcc 'links every program, builds the agent that is loaded into the VM'
    want libc6-dev 'the C library that they are built with'
    want clang-16 'compiles the BPF program'
    want libbpf-dev 'headers of the BPF program'
    want linux-libc-dev 'headers of the BPF program'
    want android-libart 'ART, the dex VM that is profiled'
    # Its package depends on none of these.
    for library in backtrace base log nativebridge nativeloader ziparchive; do
        want "android-lib$library" 'a library that ART is linked with'
    done
    want p7zip-full 'holds 7z.so, which ART loads'
    want libsmali-java 'assembles dex files'
    if [ -n "$list" ] || ! command -v java >/dev/null; then
        want default-jre-headless 'runs the assembler'
    fi
    want linux-perf 'plain perf, for comparison'
    want python3 'generates the boot class path and the workloads'
    if [ -n "$for_compiler" ]; then
        want dpkg-dev "unpacks Debian's source of ART, whose compiler is built"
    fi
    if [ -n "$for_tests" ]; then
        want llvm-16 'llvm-symbolizer checks symbol files'
        want binutils 'reads symbol files'
        want g++ 'builds programs to look names up in'
        want libclang-rt-16-dev 'libFuzzer'
        want dexdump 'an independent reader of dex files'
        command -v npm >/dev/null || want npm 'fetches packages with real dex files in them'
        want elfutils 'independent readers of symbol files'
        want gdb 'the same'
        want libc6-dbg 'debug information of the C library, to be found by its build-id'
        want debuginfod 'serves debug files; its client fetches them'
        want dwz 'makes debug files that share parts'
        case $(uname -m) in x86_64) want gcc-12-multilib 'builds a VM of 32-bit code' ;; esac
        want gcc-aarch64-linux-gnu 'builds ART for the arm64 board'
        want libc6-dev-arm64-cross 'the C library of the arm64 board'
        want gcc-arm-linux-gnueabihf 'builds ART and varid for the ARMv7 board'
        want libc6-dev-armhf-cross 'the C library of the ARMv7 board'
        want shellcheck 'checks scripts'
        want man-db 'reads the manual: man, lexgrog'
        want mandoc 'checks the manual'
        want zsh 'completes command lines'
        want fish 'the same'
        want qemu-system-arm 'the board: an ARM machine whose PMU interrupts'
        want device-tree-compiler 'tells its kernel where the PMU of the 32-bit one is'
        want adb 'reaches the board'
        want cpio 'makes its root file system'
        want mmdebstrap 'makes the empty root in which the README is tried'
        want strace 'shows which files it uses there'
        want procps 'ends what make board started'
        want sparse 'checks the kernel module'
        want tmux 'the terminal in which varid top is tried'
        want graphviz 'draws exported call graphs'
        want libxml2-utils 'reads exported flame graphs'
        want valgrind 'its callgrind_annotate reads exports'
        want openjdk-17-jdk-headless 'a JVM that is described, and its own tools, which describe it independently'
        want coccinelle 'applies the hooks of Dalvik to sources that have its shapes'
    fi
    if [ -n "$for_long" ]; then
        want golang-go 'its pprof reads exports'
        want chromium 'opens HTML reports'
        want verilator 'simulates the processors whose cycles are estimated'
        want gcc-riscv64-unknown-elf 'compiles programs for them'
        want picolibc-riscv64-unknown-elf 'their C library'
        want qemu-user 'counts their instructions'
    fi
else
    echo "deps: no apt here; needed are cc, clang-16, libbpf's headers, ART 11 (libart), smali, java, perf, binutils, python3; for tests g++, dexdump, npm, elfutils, gdb, debuginfod, dwz, coccinelle, tmux, shellcheck, graphviz, xmllint, callgrind_annotate" >&2
fi
[ -z "$list" ] || exit 0
if [ -n "$missing" ]; then
    echo "deps: installing$missing"
    apt update
    # shellcheck disable=SC2086 # a list of packages
    apt install -y --no-install-recommends $missing
fi

if ! command -v cargo >/dev/null; then
    echo "deps: no cargo: install rustup, from https://rustup.rs, and open a new shell" >&2
    exit 1
fi
component() { # COMPONENT SUBCOMMAND: rustup's component that gives cargo the subcommand
    if ! cargo "$2" --version >/dev/null 2>&1 && command -v rustup >/dev/null; then
        echo "deps: rustup component $1 is missing: cargo $2"
        rustup component add "$1"
    fi
}
component clippy clippy
component rustfmt fmt

target() { # TARGET WHY: rustup's standard library for it; without it, what needs it says so
    libraries=$(rustc --print target-libdir --target "$1")
    if [ ! -d "$libraries" ] && command -v rustup >/dev/null; then
        echo "deps: rustup target $1 is missing: $2"
        rustup target add "$1" || echo "deps: rustup has no $1: $2: not possible here" >&2
    fi
}
if [ -n "$for_tests" ]; then
    target aarch64-unknown-linux-musl 'varid for arm64 devices'
    target aarch64-unknown-linux-gnu 'ART for the arm64 board'
    target armv7-unknown-linux-gnueabihf 'varid and ART for ARMv7'
    target x86_64-unknown-linux-musl 'varid for any x86-64 machine'
fi
