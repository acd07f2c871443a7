# make run     a layer quantised, run and verified, then the benchmark of the four challenge shapes
# make test    every test
# make asan | tsan   the tests under AddressSanitizer and UndefinedBehaviorSanitizer, or under ThreadSanitizer
# make wheel   the Python package, in dist/; make test-python builds and tests it
# make bench   the speed table: ratios to this machine's peaks and to OpenBLAS
# make check   format, architecture, documents and clang-tidy
# make format  formats the sources
# make fuzz [FUZZ_SECONDS=120] | install [PREFIX=/usr/local] [DESTDIR=...] | clean
# make deps    the packages that these need: as root on Debian 12 they are installed, else the line to run is printed

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 120
packages = build test sanitize bench check
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
configure := cmake --preset default --log-level=WARNING

.PHONY: run test asan tsan wheel test-python bench check format fuzz build install deps clean

# Only what it runs: the command and the library in it.
run: packages := build
run: deps
	@$(configure)
	@cmake --build --preset default --target dualgemm_cli
	@scripts/run_demo build/default/bin/dualgemm

test: packages := build test
test: build
	@ctest --preset default -j $(JOBS)

asan tsan fuzz: packages := build test sanitize
asan tsan: deps
	@scripts/run_sanitized $@

# The libraries alone: the tests and benchmarks of `build` are not in the wheel.
wheel test-python: packages := build python
wheel test-python: deps
	@$(configure)
	@cmake --build --preset default --target dualgemm dualgemm_checkpoint_shared dualgemm_cli
	@scripts/$(if $(filter wheel,$@),build_wheel,test_python)

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
	@scripts/tidy

format: packages := check
format: deps
	@scripts/format

fuzz: deps
	@scripts/run_fuzzers $(FUZZ_SECONDS)

install: packages := build
install: deps
	@$(configure)
	@cmake --build --preset default --target dualgemm_installed
	@cmake --install build/default --prefix $(PREFIX)

deps:
	@scripts/install_deps $(packages)

clean:
	@rm -rf build
