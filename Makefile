# make run     a layer quantised, run and verified, then the benchmark of the four challenge shapes
# make test    every test but those of CUTLASS's kernels: make test-cutlass, which fetches and compiles them
# make asan | tsan   the tests under AddressSanitizer and UndefinedBehaviorSanitizer, or under ThreadSanitizer
# make wheel   the Python package, in dist/; make test-python builds and tests it
# make test-engines   vLLM's server on a CPU, on this library: docs/engines.md
# make test-ptxsim-peers   kernels of Triton and CUTLASS in ptxsim: ptxsim/docs/evidence.md
# make test-aarch64   the library for 64-bit Arm, cross-compiled and tested in qemu-user: docs/arm.md
# make wheel-aarch64 [CUDA=ON]   the Python package for it, in dist/aarch64/, tested likewise; with the CUDA part
# make bench   the speed table: ratios to this machine's peaks and to OpenBLAS
# make check   format, architecture, documents, plain words, Python's rules and types, clang-tidy
# make format  formats the sources
# make fuzz [FUZZ_SECONDS=120] | install [PREFIX=/usr/local] [DESTDIR=...] | clean
# make submission [STRATEGY=fused] [ARCH=sm_100a] [OUT=...]   one file for the GPU MODE leaderboard: docs/submission.md
# make deps    the packages that these need: as root on Debian 12 they are installed, else the line to run is printed

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 120
# For the target submission; not taken from the environment, where ARCH often means something else.
STRATEGY := fused
ARCH := sm_100a
OUT := build/submission/submission.py
# For the target wheel-aarch64.
CUDA := OFF
packages = build test sanitize bench check
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
configure := cmake --preset default --log-level=WARNING

.PHONY: run test test-cutlass asan tsan wheel test-python test-ptxsim-peers test-aarch64 wheel-aarch64 bench check format fuzz build install submission deps clean test-engines

# Only what it runs: the command and the library in it.
run: packages := build
run: deps
	@$(configure)
	@cmake --build --preset default --target dualgemm_cli
	@scripts/bench/run_demo build/default/bin/dualgemm

# One test more at a time than there are processors: some wait for a quiet one, or for a program that they start.
test: packages := build test
test: build
	@ctest --preset default -j $$(($(JOBS) + 1)) --label-exclude '^cutlass$$'

# Six kernels by others, as long to compile as all of our own.
test-cutlass: packages := build test
test-cutlass: build
	@ctest --preset default -j $(JOBS) --label-regex '^cutlass$$'

asan tsan fuzz: packages := build test sanitize
asan tsan: deps
	@scripts/check/run_sanitized $@

# The libraries alone: the tests and benchmarks of `build` are not in the wheel.
wheel test-python: packages := build python
wheel test-python: deps
	@$(configure)
	@cmake --build --preset default --target dualgemm dualgemm_checkpoint_shared dualgemm_cli_packaged
	@scripts/$(if $(filter wheel,$@),build_wheel,test_python)

test-aarch64 wheel-aarch64: packages := build python aarch64
test-aarch64: deps
	@scripts/test_aarch64

wheel-aarch64: deps
	@scripts/test_aarch64_wheel $(CUDA)

test-engines: wheel
	@scripts/test_engines

test-ptxsim-peers: packages := build python
test-ptxsim-peers: deps
	@$(configure)
	@cmake --build --preset default --target ptxsim
	@scripts/test_ptxsim_peers

build: deps
	@$(configure)
	@cmake --build --preset default

bench: packages := build bench
bench: deps
	@$(configure)
	@cmake --build --preset default --target bench_cpu
	@scripts/run_bench build/default/bin

check: deps
	@scripts/format --check
	@scripts/check_architecture
	@scripts/check_docs
	@scripts/check_prose
	@scripts/check_python
	@scripts/tidy

format: packages := check
format: deps
	@scripts/format
	@scripts/check_python --fix

fuzz: deps
	@scripts/check/run_fuzzers $(FUZZ_SECONDS)

install: packages := build
install: deps
	@$(configure)
	@cmake --build --preset default --target dualgemm_installed
	@cmake --install build/default --prefix $(PREFIX)

submission:
	@scripts/make_submission --strategy "$(STRATEGY)" --arch "$(ARCH)" --out "$(OUT)"

deps:
	@scripts/install_deps $(packages)

clean:
	@rm -rf build
