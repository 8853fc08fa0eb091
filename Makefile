# Everything a visitor or a contributor types. `make help` lists it.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Where rustup puts cargo, in case the shell has not been started anew since.
# Once only: with another PATH in an inner make, pyo3 would be built again.
ifeq ($(MAKELEVEL),0)
export PATH := $(HOME)/.cargo/bin:$(PATH)
endif

TARGET := $(or $(CARGO_TARGET_DIR),target)
BENTPIPE := $(TARGET)/release/bentpipe
DIST := $(TARGET)/dist/bentpipe

# The comparison of `make demo`; each can be set: make demo SEEDS=10 CC=peach,cubic
CC := peach,newreno,sack,cubic
LOSS := 1e-6,1e-5,1e-4,1e-3,1e-2
SEEDS := 10

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

# The demo needs the simulator only. Where `make build` has been, it uses the full program and does not put a smaller one in its place.
PARTS = $(shell $(BENTPIPE) list papers >/dev/null 2>&1 || echo --no-default-features)

.PHONY: demo
demo: setup ## Compare TCP-Peach with NewReno, SACK and CUBIC over a GEO satellite; table, chart, about three minutes with the build
	@mkdir -p out
	@echo "1 of 2: compiling the simulator, about two minutes on two cores. (make build compiles the full program.)"
	cargo build --release --locked --package bentpipe $(PARTS)
	@echo "2 of 2: simulating 200 runs of 550 s each, 4 algorithms with 5 loss rates and $(SEEDS) seeds, about half a minute on two cores."
	$(BENTPIPE) compare geo-dumbbell --cc $(CC) --vary link.satellite.loss.rate=$(LOSS) --seeds $(SEEDS) \
	    --report out/geo-dumbbell.html --csv out/geo-dumbbell.csv
	@echo
	@echo "Open out/geo-dumbbell.html in a browser; the numbers are in out/geo-dumbbell.csv."

.PHONY: build
build: setup ## Build the full program, target/release/bentpipe, installing what is missing for that
	cargo build --release --locked --package bentpipe

.PHONY: dist
dist: setup ## Build the full program for packages and benchmarks, target/dist/bentpipe: slow to compile, quicker to run
	cargo build --profile dist --locked --package bentpipe

.PHONY: deb
deb: dist ## Build the Debian package of the proxy and everything else, in out/
	scripts/build-deb $(DIST) out

.PHONY: ffi
ffi: setup ## Build the congestion controls for C: target/release/libbentpipe_ffi.so and .a; the header is crates/ffi/include/bentpipe_cc.h
	cargo build --release --locked --package bentpipe-ffi

.PHONY: ffi-test
ffi-test: ## Test the congestion controls from C, with sanitizers and valgrind, which it installs
	@scripts/setup ffi
	cargo test --workspace --locked --bin bentpipe --bin xtask --test c_programs -- --nocapture

.PHONY: header
header: setup ## Write crates/ffi/include/bentpipe_cc.h; `make test` refuses a header that is not current
	BENTPIPE_WRITE_HEADER=1 cargo test --workspace --locked --bin bentpipe --bin xtask --test c_programs header

.PHONY: kernel
kernel: ## Build the release binary with the algorithms for the Linux kernel (needs clang, libelf, zlib; installs them)
	@scripts/setup kernel
	cargo build --release --locked --package bentpipe --features kernel

.PHONY: kernel-test
kernel-test: ## Test the algorithms in the kernel of this machine: loads them, transfers, unloads (needs root)
	@scripts/setup kernel
	@# With these two packages, libraries have the features that they have in `make test`, so they are not built again.
	cargo test --locked --package bentpipe-kernel --package bentpipe-python --package xtask --features bentpipe-kernel/bpf \
	    --lib --test choosing --test verifier
	@# With the whole workspace, what `make test` has built is not built again with other features.
	cargo test --locked --workspace --features bentpipe/kernel --bin xtask --test kernel

KERNELS := 6.1 6.12

.PHONY: kernel-test-debian
kernel-test-debian: ## The same under the kernels KERNELS of Debian, in a virtual machine (QEMU; installs it)
	@scripts/setup machine
	for version in $(KERNELS); do \
	    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$(CURDIR)/scripts/with-kernel $$version" $(MAKE) --no-print-directory kernel-test; done

.PHONY: web
web: setup ## Build the laboratory for a browser in web/dist: static files for any web space, and for `bentpipe web` of the next build
	@scripts/setup web
	scripts/build-engine
	cd web && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build
	@echo "web/dist has $$(find web/dist -type f ! -name .gitignore -exec gzip -9c {} + | wc -c) bytes compressed. make build puts it into the program."

.PHONY: web-test
web-test: web ## Test the laboratory: the bytes of all built-in worlds, and the page in a headless Chromium, which it installs
	@scripts/setup browser
	@# The native program, as `make test` has built it.
	cargo build --workspace --locked --bin bentpipe --bin xtask --test numbers
	cd web && npm run --silent check && npm test

.PHONY: setup
setup:
	@scripts/setup

.PHONY: test
test: setup ## Run all tests in their quick forms, documentation examples and the Python package included
	@scripts/setup tools || echo "Tests of the emulator and of the proxy will be skipped."
	@# Loading the Python packages takes a minute, in which the compiler does not need the network.
	scripts/setup python $(abspath $(TARGET))/python & \
	cargo test --workspace --locked --lib --bins --tests --no-run && wait $$!
	@# Many tests wait for packets: more of them at a time than there are cores, and those of the Python package beside them.
	$(MAKE) --no-print-directory python-test >$(TARGET)/python-test.txt 2>&1 & python=$$!; failed=0; \
	RUST_TEST_THREADS=$$((2 * $$(nproc))) cargo test --workspace --locked --lib --bins --tests || failed=1; \
	wait $$python || failed=1; cat $(TARGET)/python-test.txt; exit $$failed
	@# Looking for examples in the documentation takes rustdoc as long as compiling; `make lint` compiles the other examples.
	if grep -rqE '^ *//[/!] ```' --include='*.rs' crates/*/src; then cargo test --workspace --locked --doc; fi

# What the tests of the Python package need. With one test beside the libraries, packages have the features that they have in `make test`, and with
# `xtask` the profiles (it shares some with procedural macros), so what that has built is not built again. So have `kernel-test` and `fuzz-minute`.
PYTHON := $(abspath $(TARGET))/python/bin/python

.PHONY: python
python: ## Build the Python package for use from this checkout, and the virtual environment of its tests
	@scripts/setup python $(abspath $(TARGET))/python
	cargo build --workspace --locked --lib --bin xtask --test numbers
	ln -sf $(abspath $(TARGET))/debug/lib_bentpipe.so python/bentpipe/_bentpipe.abi3.so

.PHONY: python-test
python-test: python ## Test the Python package: API, tables, environment, a cluster of two processes, the notebooks
	cd python && PYTHONPATH=$(CURDIR)/python $(PYTHON) -m pytest

.PHONY: report-test
report-test: python ## Test the reports in a headless Chromium, which it installs: every chart draws, fits and can be saved
	@scripts/setup browser
	cd python && PYTHONPATH=$(CURDIR)/python $(PYTHON) -m pytest tests/test_report.py

.PHONY: wheel
wheel: setup ## Build the wheel of the Python package in out/wheels, say on which systems it runs, and try it in a fresh environment
	@scripts/setup python $(abspath $(TARGET))/python
	cd python && $(PYTHON) -m maturin build --profile dist --locked --out ../out/wheels
	$(PYTHON) -m auditwheel show out/wheels/*.whl
	scripts/test-wheel out/wheels/*.whl

# Random worlds, and cases of each property: make storm WORLDS=100000
WORLDS := 10000

.PHONY: storm
storm: setup ## Run the random worlds and properties in their full number, with every assertion
	BENTPIPE_STORM=$(WORLDS) PROPTEST_CASES=$(WORLDS) \
	    cargo test --profile storm --workspace --locked --test storm --test registry

# Slices of the long storm: make storm-slices SLICES=10 goes on where the last one ended.
SLICES := 1

.PHONY: storm-slices
storm-slices: setup ## Go on with the long storm by SLICES slices; each is noted in out/storm.log with its seeds, packets and seconds
	scripts/storm-slices $(SLICES)

# Packets for the stack, inputs for the readers of packets and of text, and where the dice begin: make fuzz PACKETS=1000000 SEED=2
PACKETS := 100000000
INPUTS := 1000000000
TEXTS := 1000000
SEED := 1

.PHONY: fuzz
fuzz: setup ## Feed the stack and the readers with inputs made up from SEED, in their full number
	cargo build --profile storm --locked --package bentpipe-fuzz
	$(TARGET)/storm/bentpipe-fuzz stack $(PACKETS) $(SEED)
	$(TARGET)/storm/bentpipe-fuzz wire $(INPUTS) $(SEED)
	for reader in scenario study setting script; do $(TARGET)/storm/bentpipe-fuzz $$reader $(TEXTS) $(SEED); done

.PHONY: fuzz-minute
fuzz-minute: setup ## Feed the stack and the readers for less than a minute, with what `make test` has built: a part of .ci/run
	BENTPIPE_FUZZ=30 cargo test --workspace --locked --bin xtask --test quick

.PHONY: lint
lint: ## Check formatting, Clippy, the rules of the house and the documentation
	@scripts/setup lint
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo xtask tidy
	@# Alone, without anything that needs std: these two are no_std with alloc, and then even f64 has only what core gives it.
	cargo check --locked --quiet --package bentpipe-cc --lib
	@# The pure crates compile even where there is no clock, no socket and no file, if that target is installed.
	@if rustup target list --installed 2>/dev/null | grep -q wasm32-unknown-unknown; then \
	    cargo check --locked --quiet --target wasm32-unknown-unknown $$(cargo xtask pure | sed 's/^/-p /'); fi
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
	@scripts/setup python $(abspath $(TARGET))/python
	cd python && $(PYTHON) -m ruff check . ../examples/cluster && $(PYTHON) -m ruff format --check . ../examples/cluster
	cd python && $(PYTHON) -m mypy
	@$(MAKE) --no-print-directory docs

.PHONY: docs
docs: ## Build the documentation in target/site; a dead link or a page outside the navigation is an error
	@scripts/setup python $(abspath $(TARGET))/python
	@# With --quiet a warning would be no error. Its own progress messages are of no use here.
	NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --site-dir $(abspath $(TARGET))/site 2>&1 | sed '/^INFO /d'
	@echo "Open $(TARGET)/site/index.html in a browser."

.PHONY: reference
reference: setup ## Write docs/reference from the program; `make test` refuses pages that are not current
	BENTPIPE_WRITE_REFERENCE=1 cargo test --workspace --locked --bin bentpipe --bin xtask --test reference --test registry

.PHONY: bench
bench: setup ## Measure ns for an ACK and for a segment, and packets per second of CPU time in worlds of 20 to 20,000 flows
	cargo bench --locked --package bentpipe-cc --bench per_ack
	cargo bench --locked --package bentpipe-tcp --bench engine
	cargo run --profile dist --locked --package bentpipe-sim --example throughput

.PHONY: demo-check
demo-check: setup ## Check the program of `make demo`: what it prints, what the papers of the full one draw, and that each part compiles alone
	cargo build --release --locked --package bentpipe --no-default-features
	@mkdir -p out
	$(BENTPIPE) show geo-single >out/demo-check.toml
	{ $(BENTPIPE) paper all 2>&1 || true; } | grep 'make build'
	@# The full program, as `make test` has built it.
	cargo build --workspace --locked --bin bentpipe --bin xtask
	cargo xtask demo
	@# Checking finds what compiling finds, in a tenth of the time.
	for part in emulate generate parquet pep studies transfer web; do \
	    cargo check --locked --package bentpipe --lib --no-default-features --features $$part; done
