# make run     a layer quantised, run and verified, then the benchmark of the four challenge shapes
# make test    every test, also under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer
# make bench   the speed table: ratios to this machine's peaks and to OpenBLAS
# make check   format, architecture and clang-tidy
# make format  formats the sources
# make asan | tsan | fuzz [FUZZ_SECONDS=120] | install [PREFIX=/usr/local]
# As root on Debian 12, missing packages are installed; as another user their names are printed.

JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 120
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

.PHONY: run test bench check format build asan tsan fuzz install clean

build:
	@scripts/install_deps build
	@cmake --preset default --log-level=WARNING
	@cmake --build --preset default

run: build
	@scripts/run_demo build/default/bin/dualgemm

test:
	@scripts/install_deps build test
	@$(MAKE) --no-print-directory build
	@echo "The last two entries, sanitizer.asan and sanitizer.tsan, build and run the tests again: some minutes each."
	@ctest --preset all -j $(JOBS)

bench: build
	@scripts/run_bench build/default/bin

check:
	@scripts/install_deps build test check
	@scripts/format --check
	@scripts/check_architecture
	@scripts/tidy

format:
	@scripts/install_deps check
	@scripts/format

asan tsan:
	@scripts/install_deps build test
	@scripts/run_sanitized $@

fuzz:
	@scripts/install_deps build test
	@scripts/run_fuzzers $(FUZZ_SECONDS)

install: build
	@cmake --install build/default --prefix $(PREFIX)

clean:
	@rm -rf build
