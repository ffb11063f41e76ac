# Everything a newcomer or a build server needs. Wants: a Rust toolchain, Python >= 3.10 with venv, make.

PYTHON ?= python3
CARGO  ?= cargo
VENV   := .venv
BIN    := $(VENV)/bin
TOOLS  := .tools
DEMO   := demo-results

# One interpreter for every build of the native module, so that cargo and maturin do not undo each other's work.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export PYO3_BUILD_EXTENSION_MODULE := 1

RUST_SOURCES := Cargo.toml Cargo.lock $(wildcard crates/*/Cargo.toml) $(shell find crates/*/src -name '*.rs' 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help build demo test test-rust test-python bench lint lint-rust lint-python lint-deps advisories clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---------------------------------------------------------------- build

build: $(VENV)/.package ## the program, as .venv/bin/millpond

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "millpond needs Python 3.10 or newer; name one: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
	  || { echo "$(PYTHON) cannot make virtual environments; install its venv module (Debian: python3-venv)"; exit 1; }
	@command -v $(CARGO) >/dev/null \
	  || { echo "cargo is missing: install a Rust toolchain (1.88 or newer)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.maturin: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --upgrade 'maturin>=1.9.4,<2'
	@touch $@

$(VENV)/.package: $(RUST_SOURCES) $(VENV)/.maturin
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release
	@touch $@

$(VENV)/.dev: $(VENV)/.package pyproject.toml
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --release --extras dev
	@touch $@

# ---------------------------------------------------------------- use

demo: build ## rerun the study "Is CoAP Congestion Safe?" in small, and say where its report is
	@rm -rf $(DEMO)
	$(BIN)/millpond reproduce anrw18 --quick --out $(DEMO)

# ---------------------------------------------------------------- checks

test: test-rust test-python ## every test

# The same random cases every time; looking for others is the fuzzers' work (fuzz/README.md).
test-rust: export PROPTEST_RNG_SEED ?= 7252
test-rust: | $(BIN)/python
	$(CARGO) test --workspace --locked --no-fail-fast

test-python: $(VENV)/.dev
	$(BIN)/python -m pytest

bench: $(VENV)/.package ## every benchmark, then the whole study by the clock
	$(CARGO) bench --workspace --locked -- --noplot --quiet --warm-up-time 1 --measurement-time 2
	$(BIN)/python crates/py/benches/whole_study.py

lint: lint-rust lint-deps lint-python ## formatting, lints, types, documentation, licences

lint-rust: | $(BIN)/python
	@{ $(CARGO) fmt --version && $(CARGO) clippy --version; } >/dev/null 2>&1 || rustup component add rustfmt clippy
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	for feature in '' rfc7252 cocoa alloc,rfc7252; do \
	  $(CARGO) clippy -p millpond-control --all-targets --no-default-features --features "$$feature" --locked -- -D warnings || exit 1; \
	done
	@if rustup target list --installed 2>/dev/null | grep -qx $(SMALLEST); \
	  then $(CARGO) check -p millpond-control --target $(SMALLEST) --locked; \
	  else echo "left out: the build for $(SMALLEST) (rustup target add $(SMALLEST))"; fi
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked

# A processor with neither operating system nor atomic swaps: what builds there needs nothing.
SMALLEST := thumbv6m-none-eabi

CARGO_DENY := $(or $(shell command -v cargo-deny 2>/dev/null),$(TOOLS)/bin/cargo-deny)

lint-deps: $(CARGO_DENY)
	$(CARGO_DENY) --locked check bans licenses sources

$(TOOLS)/bin/cargo-deny:
	$(CARGO) install cargo-deny --locked --quiet --root $(TOOLS)

# Apart from lint: the list of advisories is fetched from the network and changes without this code changing.
advisories: $(CARGO_DENY) ## known security advisories of the dependencies (needs the network)
	$(CARGO_DENY) --locked check advisories

lint-python: $(VENV)/.dev
	$(BIN)/ruff check python crates/py/benches
	$(BIN)/ruff format --check python crates/py/benches
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest millpond._engine

clean: ## forget every build and demo result
	rm -rf target fuzz/target dist $(VENV) $(TOOLS) $(DEMO)
	find python -name __pycache__ -prune -exec rm -rf {} +
	rm -rf .mypy_cache .pytest_cache .ruff_cache python/millpond/*.so
