# The README uses `make run` and `make test`. The work is done in scripts/.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

CARGO := scripts/cargo
WORKLOAD ?= a
# Server to start: auto, mongod or embedded.
SERVER ?= auto
# More options for `dyno run`, such as: make run ARGS="--duration 2m --clients 64"
ARGS ?=
# 0 builds without `dyno trace`, which alone needs clang, pkg-config, libelf and zlib.
export EBPF ?= 1
# Drivers to build and check (default: all).
DRIVERS ?=

# Value of `--duration` and `--warmup` in tests of guides.
DURATION ?= 1s

# Fleet size and length of `make bench-fleet`.
AGENTS ?= 1000
SECONDS ?= 60

.PHONY: help setup build dist dist-test drivers drivers-test run check test test-full test-guides fuzz chaos bench bench-parts bench-verdict bench-trace bench-trace-report bench-tail bench-fleet lint clean-runs

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

setup: ## install what is missing to build and run
	@scripts/setup.sh

build: ## build the release binary, target/release/dyno
	@scripts/setup.sh build
	@$(CARGO) build --release --locked --package mongodyno $(if $(filter 0,$(EBPF)),--no-default-features)
	@scripts/split-symbols.sh target/release/dyno target/release/dyno target/release/dyno.debug

dist: ## build a static program with eBPF as tarball, Debian package and Python wheel, in target/dist
	@scripts/dist.sh

dist-test: ## install what `make dist` made into empty roots and run workload C there
	@scripts/dist-test.sh

drivers: setup ## build the drivers of `dyno tail`; DRIVERS="go node" builds only those
	@scripts/drivers.sh $(DRIVERS)

drivers-test: drivers ## check every built driver against drivers/README.md
	@scripts/setup.sh embedded
	@cd drivers && python3 -m unittest --quiet conformance.test_checks && python3 -m conformance $(addprefix --driver ,$(DRIVERS))

run: ## install MongoDB and measure WORKLOAD (default: a) on it (SERVER=embedded: on the embedded server)
	@scripts/run.sh $(WORKLOAD) $(SERVER) $(ARGS)

check: ## check an edit: formatting, clippy, unit tests of crates changed since BASE (default: HEAD)
	@scripts/check.sh

test: ## install what is missing and run the tests, with real servers (MONGOD=PATH MONGOS=PATH PERCONA=PATH)
	@MONGOD=$(MONGOD) MONGOS=$(MONGOS) PERCONA=$(PERCONA) scripts/test.sh

test-full: ## run the tests with every case of every driver, and the guides; before a release
	@MONGOD=$(MONGOD) MONGOS=$(MONGOS) PERCONA=$(PERCONA) scripts/test.sh full

test-guides: ## run the commands of the guides in a fresh clone, with runs of DURATION (default: 1s); GUIDES=FILE for one
	@scripts/setup.sh test
	@DURATION=$(DURATION) scripts/test-guides.sh $(GUIDES)

chaos: ## kill runs, fill their disks, turn them read-only and step their clocks at 200 random moments, and check the reports (root, MOMENTS=N)
	@DYNO_CHAOS_MOMENTS=$(or $(MOMENTS),200) $(CARGO) test --locked --quiet --package mongodyno --test it chaos:: -- --nocapture

bench: setup ## print the cost and the accuracy of the generator (minutes)
	@$(CARGO) run --release --locked --quiet --package dyno-bench

fuzz: setup ## fuzz the parsers of external data, SECONDS for each of eight targets
	@scripts/fuzz.sh $(SECONDS)

bench-verdict: setup ## run with twenty known faults and without, and print the findings (root, 10 minutes; VERDICT="--mongod PATH")
	@$(if $(findstring --mongod,$(VERDICT)),,scripts/setup.sh embedded)
	@$(CARGO) build --release --locked --quiet --package mongodyno
	@$(CARGO) run --release --locked --quiet --package dyno-bench -- verdict $(VERDICT)

bench-trace-report: setup ## write, analyse and draw a trace of ten million calls
	@$(CARGO) bench --locked --quiet --package dyno-report --bench trace_report

bench-trace: setup ## print the overhead of tracing at 20,000 calls a second (root, minutes; PAIRS=300)
	@$(CARGO) bench --locked --quiet --package dyno-trace --features ebpf --bench cost
	@$(CARGO) bench --locked --quiet --package dyno-trace --features ebpf --bench throughput

bench-tail: drivers ## print the overhead of the driver `wire` of `dyno tail` over a bare insert and getMore (a minute)
	@scripts/setup.sh embedded
	@$(CARGO) bench --locked --quiet --package dyno-tail --bench floor

bench-fleet: setup ## replay the messages of a fleet against a real Redis (AGENTS=1000 SECONDS=60)
	@DYNO_BENCH_AGENTS=$(AGENTS) DYNO_BENCH_SECONDS=$(SECONDS) $(CARGO) bench --locked --quiet --package dyno-fleet --bench fleet

bench-parts: setup ## print the times of components: encoding, histograms, key choice
	@$(CARGO) bench --locked --workspace --benches

lint: setup ## check formatting, clippy and documentation, with warnings as errors
	@$(CARGO) fmt --all --check
	@$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	@RUSTDOCFLAGS=-Dwarnings $(CARGO) doc --locked --workspace --no-deps --document-private-items

clean-runs: ## remove all recorded runs in runs/
	@rm -rf runs
