# What can be done here? make help says. On Debian 12 with rustup every target installs what it needs, and says so.

export PATH := $(HOME)/.cargo/bin:$(PATH)

# One folder and one profile for everything: see Cargo.toml.
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
export CARGO_TARGET_DIR := $(TARGET)
RELEASE := $(TARGET)/release
TESTBED := $(TARGET)/testbed

# Seconds for each fuzz target.
TIME ?= 60

.DELETE_ON_ERROR:
.PHONY: help deps test-deps build testbed demo demo-compiled fresh fresh-base art-compiler art-changed test-programs test test-long test-release board-image board-products board-trial board board-cost paper estimate-paper exact-paper estimate-study board-module-soak module cross dist install lint bench fuzz fmt docs clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 25

deps: ## install what is missing (apt packages; rustup itself is yours)
	@scripts/deps.sh

# What only tests, lint and benchmarks need.
test-deps: deps
	@scripts/deps.sh --test

build: programs testbed ## varid, and the VM and the apps that it is tried on

programs: deps
	cargo build --locked --release -p varid -p varid-exact-agent -p varid-calibrate-counter -p artvm

# What artvm needs beside itself, the workloads, and the interpreter whose truth is known. Only tests need ART 14: where it cannot be
# fetched (status 3), its script says why.
testbed: $(RELEASE)/libvarid_art.so $(TESTBED)/workloads/.built $(TESTBED)/shadowvm/shadowvm
	tests/bootclasspath/build.sh $(RELEASE)
	tests/art14/build.sh $(RELEASE) || [ $$? -eq 3 ]

$(RELEASE)/libvarid_art.so: dvm-patch/build.sh $(wildcard dvm-patch/art/* dvm-patch/dim/* dvm-patch/include/*) | deps
	dvm-patch/build.sh $(RELEASE)

$(TESTBED)/workloads/.built: $(shell find tests/workloads -type f -not -name '*.pyc') | deps
	tests/workloads/build.sh $(@D)
	@touch $@

$(TESTBED)/shadowvm/shadowvm: $(wildcard tests/shadowvm/* tests/methods/* dvm-patch/dim/* dvm-patch/include/*) | deps
	tests/shadowvm/build.sh $(@D)

$(TESTBED)/stackvm/stackvm: $(wildcard tests/stackvm/* dvm-patch/dim/* dvm-patch/include/*) | test-deps
	tests/stackvm/build.sh $(@D)

$(TESTBED)/areavm/areavm: $(wildcard tests/areavm/* tests/methods/* dvm-patch/dim/* dvm-patch/include/*) | test-deps
	tests/areavm/build.sh $(@D)

demo: build ## profile a dex app in ART and print its profile beside plain perf's
	scripts/demo.sh $(RELEASE) $(TESTBED)/workloads $(TARGET)/demo

demo-compiled: build ## the same app interpreted and compiled, compared; builds ART's compiler: five CPU minutes, this once
	@scripts/deps.sh --compiler
	tests/art11/build.sh $(RELEASE)
	scripts/demo-compiled.sh $(RELEASE) $(TESTBED)/workloads $(TARGET)/demo

# FULL=1 builds from nothing there, and runs make test, too.
fresh: test-deps build ## try the README's make demo in an empty Debian root
	scripts/fresh.sh $(TARGET) $(if $(FULL),full)

fresh-base: test-deps
	scripts/fresh.sh --base $(TARGET)

# The compilers of ART 11 and 14, for x86-64 only: some minutes the first time.
art-compiler: test-deps
	@[ "$$(uname -m)" != x86_64 ] || tests/art11/build.sh $(RELEASE)
	@[ "$$(uname -m)" != x86_64 ] || tests/art14/compiler.sh $(RELEASE)

# ART 11 with fields that no build has, for x86-64 only: ten minutes the first time.
art-changed: test-deps
	@[ "$$(uname -m)" != x86_64 ] || tests/art11/changed.sh $(RELEASE)

test-programs: test-deps programs $(TESTBED)/areavm/areavm $(TESTBED)/stackvm/stackvm
	cargo build --locked --release -p varid -p varid-exact-agent -p varid-calibrate-counter -p artvm -p varid-stackvm
	scripts/test-programs.sh build

# EXCEPT names test programs that are left out: board, live, vm.
test: build test-programs $(if $(filter board,$(EXCEPT)),,board-trial) ## all tests; ends with how many passed
	scripts/test.sh $(RELEASE) $(TESTBED)/workloads $(TARGET)/test.log $(EXCEPT)

# STEPS=... runs only these, as after a mending.
test-long: build test-programs art-compiler art-changed board-products ## what takes too long for each change, an hour: writes docs/test-long.md
	@scripts/deps.sh --long
	scripts/test-long.sh $(TARGET) docs/test-long.md long $(STEPS)

test-release: build art-compiler board-products ## what a release needs beside that, an hour: writes docs/test-long.md, docs/board-cost.md, docs/evaluation.md, docs/java-programs.md
	@scripts/deps.sh --long
	scripts/test-long.sh $(TARGET) docs/test-long.md release $(STEPS)

# What the board boots, and what runs on it.
board-image: test-deps
	tests/board/image.sh arm64 $(TARGET)/board/image/arm64

board-products: board-image
	tests/board/products.sh arm64

# The same with a varid that is built sooner, and is larger.
board-trial: board-image
	tests/board/products.sh --trial arm64

board: build board-products ## boot an ARM board in QEMU, profile the app there by CPU_CYCLES, print its profile here
	scripts/board.sh $(TARGET)

board-cost: build art-compiler board-products ## what varid and perf cost the app, exactly, on that board: writes docs/board-cost.md
	scripts/board-cost.sh $(TARGET) docs/board-cost.md

paper: test-deps build ## the paper's figures and tables, measured on that board: writes docs/evaluation.md
	scripts/paper.sh $(TARGET) docs/evaluation.md

# SMALL=1 shows that all of it runs, and measures little.
estimate-paper: test-deps build ## what papers on estimates print, beside ours, a quarter of an hour: writes docs/estimates.md
	scripts/estimate_paper.py $(RELEASE) docs/estimates.md $(if $(SMALL),small)

exact-paper: test-deps build ## what exact calling contexts cost, beside what JP2's paper prints, half an hour: writes docs/exact-costs.md
	scripts/exact_paper.py $(RELEASE) docs/exact-costs.md $(if $(SMALL),small)

estimate-study: programs ## estimates of RISC-V programs beside the processors' RTL and TotalProf's paper, some minutes: writes docs/processor-study.md
	@scripts/deps.sh --long
	scripts/processor_study.py $(RELEASE) $(TARGET)/rtl docs/processor-study.md

board-module-soak: test-deps ## load and unload the kernel module 10,000 times on the board, under load; fuzz its device
	tests/board/module-soak.sh

module: test-deps ## build the kernel module for all kernels whose headers Debian has, with sparse
	tests/board/module-kernels.sh

# amd64, arm64 or armhf.
ARCH ?= arm64

cross: test-deps ## varid for a device, static, and its agent: ARCH=arm64, armhf or amd64
	scripts/cross.sh $(ARCH) $(TARGET)/cross/$(ARCH)

dist: test-deps ## archives for amd64, arm64 and armhf, with checksums, unpacked and tried
	scripts/dist.sh $(TARGET)/dist
	tests/dist.sh $(TARGET)/dist

# The program that is there: 'make install' as root builds nothing. DESTDIR stands before PREFIX.
PREFIX ?= /usr/local

install: ## install varid, its manual and completions below PREFIX=/usr/local, after make build
	@[ -x $(RELEASE)/varid ] || { echo "make install: there is no $(RELEASE)/varid: make build comes first" >&2; exit 1; }
	DESTDIR="$(DESTDIR)" scripts/install.sh $(RELEASE)/varid $(PREFIX)

lint: test-deps ## format, clippy, shellcheck, licences, SPDX lines, links
	scripts/lint.sh

# QUICK=1 shows that all of it runs, measures little, and writes nothing.
bench: test-deps build ## what a sample, a name, a report and a recording cost, beside other tools, on an idle machine: writes docs/benchmarks.md
	cargo build --locked --release -p varid -p varid-exact-agent -p varid-calibrate-counter -p artvm -p varid-recording -p varid-symbolizer -p varid-report --examples
	scripts/bench.sh $(TARGET) docs/benchmarks.md $(if $(QUICK),quick)

fuzz: test-deps ## each parser against hostile input for TIME=60 seconds
	fuzz/run.sh $(TIME)

fmt: deps ## format the Rust sources
	cargo fmt --all

docs: deps ## the crates' documentation, below target/doc
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --workspace --no-deps --release
	scripts/links.py

clean: ## remove everything that was built
	cargo clean
