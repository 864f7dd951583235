# Stillpoint's commands, for users and contributors: `make help` lists them.
#
# Nothing here writes outside this folder, but for the packages that scripts/setup.sh installs and
# what `make install` is asked to. Temporary files, pools of tests and the compiler cache lie in build/.

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60

# Of make soak: how many kills, which moments, and after how many seconds to stop (0: not before the end).
KILLS ?= 10000
STATES ?= 1000000
SEED ?= 1
LIMIT_S ?= 0

export NINJA_STATUS := [%p of %t files, %e s] $(empty)
export TMPDIR := $(CURDIR)/build/tmp
export PYTHONDONTWRITEBYTECODE := 1
export CCACHE_DIR ?= $(CURDIR)/build/ccache
# Most tests wait for a disk, a kill or an interval.
export CTEST_PARALLEL_LEVEL ?= $(shell expr 3 \* $(JOBS))

# Only where it is installed; asked when a recipe runs, since setup may have changed the answer.
launcher = $$(command -v ccache >/dev/null 2>&1 && echo "-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
only = @cmake --build --preset release -j $(JOBS) --target
say = @printf '\n== %s\n' "$(1)"

.PHONY: all build demo test test-all check asan tsan kill-loop soak faults mutations fuzz bench style format format-check docs site
.PHONY: install uninstall packages abi
.PHONY: performance papers memcached-bench memcached-demo memcached-soak explore canaries nvhooks-fuzz schedules guest clean help
.PHONY: programs foreign cluster-test
.PHONY: configure build-tests build-bench setup setup-test setup-memcached kyotocabinet-kills tmp
.NOTPARALLEL:

all: build

help:
	@echo "make              build the product: build/bin/stillpoint, build/lib/libstillpoint.so (build-tests, build-bench: the rest)"
	@echo "make demo         set up, build, and run the word-index demo with its kills"
	@echo "make test         set up, build, and run the tests, also under AddressSanitizer and UBSan: before every commit on main"
	@echo "make test-all     the long tests too, and all under ThreadSanitizer: once a day, and before a release (an hour)"
	@echo "make check        only the tests of the release build"
	@echo "make asan, tsan   only the unit tests under AddressSanitizer + UBSan, or ThreadSanitizer"
	@echo "make style        only the checks of style, layering and documents"
	@echo "make format       lay out C and C++ as .clang-format says (format-check: say only what is not)"
	@echo "make docs         write the generated documents again: options, statistics, tables of figures"
	@echo "make site         make the documents into a site with search: build/site/index.html (10 seconds)"
	@echo "make kill-loop    kill word-index and a program of each engine 200 times each: nothing is lost"
	@echo "make soak         kill a checking program KILLS=$(KILLS) times, at every persist point and at random (SEED, LIMIT_S)"
	@echo "make explore      judge STATES=$(STATES) crash states, for at most LIMIT_S seconds (SEED)"
	@echo "make canaries     take out one fence, sync or checksum at a time: the explorer must notice each"
	@echo "make faults       make every call of a program's life fail once and permanently, on every medium"
	@echo "make mutations    damage every bit of a pool's structures, one after the other (15 minutes)"
	@echo "make cluster-test  ROUNDS=100 rounds of faults on LANES=2 Ceph clusters that it installs and starts in folders (SEED)"
	@echo "make guest        cut the power of a virtual machine (QEMU) CYCLES=$(CYCLES) times for each kind of disk (SEED)"
	@echo "make schedules    explore the schedules of the quiescence protocol at length, and its mutants (an hour)"
	@echo "make fuzz         run each fuzzer for FUZZ_SECONDS=$(FUZZ_SECONDS)"
	@echo "make nvhooks-fuzz random programs against the compiler pass for SECONDS=$(SECONDS) (SEED)"
	@echo "make programs     random multi-threaded programs, each with its own model, killed for SECONDS=600 (SEED; default: the day's)"
	@echo "make foreign      60 programs of Debian with and without a pool: same output, each tracker and engine (15 minutes)"
	@echo "make bench        run the benchmarks (takes minutes; use an idle machine)"
	@echo "make performance  the full run: docs/measured/tables/workloads.md, its data and plots, and a page build/report (two hours)"
	@echo "make papers       the figures and tables of the papers: docs/measured/tables/papers.md (80 minutes; QUICK=--quick: 5)"
	@echo "make memcached-bench  memcached with and without a pool: docs/measured/tables/memcached.md (25 minutes; QUICK=--quick: 1)"
	@echo "make memcached-demo   a full memcached is killed under load, and is full again when it is started (QUICK=--quick)"
	@echo "make memcached-soak   kill a durable memcached KILLS=500 times under mixed load; a model checks each restart (SEED, LIMIT_S)"
	@echo "make kyotocabinet-kills  kill a program on Kyoto Cabinet's durable databases KILLS=100 times; it checks itself (SEED)"
	@echo "make install      install to PREFIX (default /usr/local; DESTDIR is honoured)"
	@echo "make uninstall    remove from PREFIX what make install put there"
	@echo "make packages     packages for Debian in build/packages: library, development files, command, compiler, memcached"
	@echo "make abi          record the binary interface of the library in tests/abi, which tests compare it with"
	@echo "make clean        remove what was built"
	@echo
	@echo "Variables: JOBS=$(JOBS), PREFIX=$(PREFIX), DESTDIR. Releases and packages: docs/."

setup: tmp
	@sh scripts/setup.sh build

setup-test: tmp
	@sh scripts/setup.sh test

setup-memcached: tmp
	@sh scripts/setup.sh memcached

tmp:
	@mkdir -p "$(TMPDIR)"

configure: setup tmp
	@cmake --preset release -Wno-dev --log-level=WARNING $(launcher)

# The product alone. The line before it says how much there is to do, and each line how far it is.
build: configure
	$(call say,Building library and command and compiler in build/: some five minutes on two CPUs from nothing)
	@cmake --build --preset release -j $(JOBS)

# Only what the demo runs.
demo: configure
	$(call say,Building what the demo needs: some four minutes on two CPUs from nothing)
	$(only) stillpoint_tool word-index
	$(call say,Demo: word-index on real files killed and restarted: about ten seconds)
	@python3 scripts/demo.py

# The programs that tests run, and those that benchmarks measure.
build-tests: configure
	$(call say,Building every program that a test runs)
	$(only) all test_programs

build-bench: configure
	$(call say,Building the benchmarks)
	$(only) all bench_programs

# Builds and tests overlap: scripts/test_everything.py says how.
test: setup-test tmp
	@python3 -B scripts/test_everything.py --jobs $(JOBS) -- $(launcher)

test-all: setup-test tmp
	@python3 -B scripts/test_everything.py --all --jobs $(JOBS) -- $(launcher)

check: build-tests
	$(call say,Testing the release: about eight minutes; quick tests alone: ctest --test-dir build -L quick)
	@ctest --preset release

asan tsan: setup-test tmp
	$(call say,Building and testing with the $@ preset in build-$@/)
	@cmake --preset $@ -Wno-dev --log-level=WARNING $(launcher)
	@cmake --build --preset $@ -j $(JOBS) --target unit_tests
	@ctest --preset $@ -L unit

style:
	@python3 scripts/check_includes.py
	@python3 scripts/tidy.py
	@python3 scripts/format.py --check

format:
	@python3 scripts/format.py

format-check:
	@python3 scripts/format.py --check

docs: build
	@python3 scripts/generate_docs.py

# The documents as a site with search; reads from no network.
site: tmp
	@sh scripts/setup.sh site
	@python3 -B scripts/site.py

kill-loop: configure
	$(only) stillpoint_tool bank word-index $(basename $(notdir $(wildcard tests/kill/*_ledger.cpp)))
	$(call say,Killing each program 200 times at random moments)
	@python3 tests/kill/kill_loop.py --program word-index --kills 200
	@for engine in $(patsubst src/engines/%/,%,$(wildcard src/engines/*/)); do \
	    python3 tests/kill/kill_loop.py --engine $$engine --kills 200 --interval-ms 10 && \
	    python3 tests/kill/kill_loop.py --engine $$engine --kills 200 --interval-ms 10 --medium memory --pool-folder /dev/shm || \
	    [ $$? = 77 ] || exit 1; done
	@for medium in file memory; do \
	    python3 tests/kill/kill_loop.py --program ledger-of-processes --kills 200 --interval-ms 10 --medium $$medium || exit 1; done

soak: configure
	$(only) stillpoint_tool soak_program
	$(call say,Killing soak_program $(KILLS) times at every persist point and at random moments)
	@python3 tests/kill/soak.py --kills $(KILLS) --seed $(SEED) --limit-s $(LIMIT_S) --jobs $(JOBS)

faults: build-tests
	$(call say,Failing every call of a whole life on every medium)
	@python3 -B tests/faults/everywhere.py

mutations: configure
	$(only) engines_test
	$(call say,Damaging every bit, sector and page of a pool)
	@seq 0 7 | STILLPOINT_MUTATIONS=all GTEST_TOTAL_SHARDS=8 GTEST_BRIEF=1 xargs -P $(shell expr 2 \* $(JOBS)) -I{} env GTEST_SHARD_INDEX={} \
	    build/bin/engines_test --gtest_filter='*Mutations*:*DamageAfterwards*'

# The packages come first: without librados the agent of pools in Ceph is not built.
cluster-test: ROUNDS = 100
cluster-test: LANES = 2
cluster-test: tmp
	@sh scripts/setup.sh cluster
	@$(MAKE) --no-print-directory configure
	$(only) all bank $(basename $(notdir $(wildcard tests/kill/*_ledger.cpp tests/cluster/*.cpp)))
	$(call say,Breaking Ceph clusters and the owners of their pools $(ROUNDS) times in $(LANES) lanes: two seconds a round)
	@python3 -B tests/cluster/doctor_test.py || [ $$? = 77 ]
	@python3 -B tests/cluster/full_test.py || [ $$? = 77 ]
	@python3 -B tests/cluster/faults.py --rounds $(ROUNDS) --lanes $(LANES) --seed $(SEED) || [ $$? = 77 ]
	@python3 -B tests/cluster/replica_faults.py --rounds $(ROUNDS) --lanes $(LANES) --seed $(SEED) || [ $$? = 77 ]

CYCLES ?= 20
guest: build-tests
	$(call say,Cutting the power of a virtual machine $(CYCLES) times for each kind of durable device)
	@sh scripts/setup.sh guest || echo "guest: not every package could be installed (above)"
	@python3 -B tests/guest/power_cuts.py --download --skip-is-success --verbose --cycles $(CYCLES) --seed $(SEED)

# Each day has seeds of its own; the test in `make test` always has the same one, so that it does not fail for a change that did nothing.
programs: SECONDS = 600
programs: SEED := $(shell date +%y%m%d)000
programs: setup-test build
	$(call say,Random programs on durable memory killed at random for $(SECONDS) s: SEED=$(SEED))
	@python3 -B tests/programs/programs.py --seconds $(SECONDS) --seed $(SEED) --jobs $(JOBS) --json build/programs.json

SCHEDULE_SECONDS ?= 60
schedules: configure
	$(only) schedules
	$(call say,Exploring the schedules of the quiescence protocol: at most $(SCHEDULE_SECONDS) s for each scenario and model)
	@build/bin/schedules --seconds $(SCHEDULE_SECONDS) --states 20000000 --random-seconds 5
	$(call say,The same with each ordering taken away: every one must be noticed)
	@build/bin/schedules --mutants --states 20000 --random-seconds 0.1

fuzz: setup-test tmp
	$(call say,Fuzzing what is read from outside, under AddressSanitizer and UBSan)
	@cmake --preset fuzz -Wno-dev --log-level=WARNING $(launcher)
	@cmake --build --preset fuzz -j $(JOBS) --target fuzzers
	@python3 -B scripts/fuzz.py --seconds $(FUZZ_SECONDS) --jobs $(JOBS)

SECONDS ?= 600
nvhooks-fuzz: build-tests
	$(call say,Fuzzing the compiler pass: hooks must cover exactly the bytes written)
	@python3 -B tests/nvhooks/fuzz.py --plugin build/lib/libstillpoint-nvhooks-19.so --seed $(SEED) --canaries
	@python3 -B tests/nvhooks/fuzz.py --plugin build/lib/libstillpoint-nvhooks-19.so --seed $(SEED) --seconds $(SECONDS) --every

# Programs that cannot be installed or unpacked are skipped, with a message; 25 at least must run.
# ARGUMENTS, in place of that number: --only NAME, --quick, --variants uffd, --list.
foreign: build-tests
	$(call say,Running programs of others with a pool and without)
	@sh scripts/setup.sh foreign || echo "foreign: not every package could be installed (above)"
	@python3 -B tests/foreign/unpack.py build/foreign/packages
	@python3 -B tests/foreign/foreign.py --json build/foreign.json $(or $(ARGUMENTS),--at-least 25)

explore: configure
	$(only) explore
	$(call say,Exploring $(STATES) crash states)
	@build/bin/explore --states $(STATES) --seed $(SEED) --jobs $(JOBS) $(if $(LIMIT_S),--seconds $(LIMIT_S))

canaries: configure
	$(only) explore
	$(call say,Removing one canary at a time)
	@build/bin/explore --canaries --jobs $(JOBS)

bench: build-bench
	$(call say,Benchmarks: each prints ratios against the same work without Stillpoint)
	@python3 -B bench/run.py all

# Regenerates docs/measured/tables/workloads.md and its data: every workload on the first engine and the peers that are here. Takes its
# time; use an idle machine.
DURABILITY ?= power
PERFORMANCE = --threads 2 --durability $(DURABILITY) --no-kill
PERFORMANCE_FILES = build/performance.json build/performance-mixes.json
performance: build-bench
	$(call say,Measuring every workload on the first engine and every peer)
	@build/bin/stillpoint bench --workload all $(PERFORMANCE) --json build/performance.json
	@build/bin/stillpoint bench --workload hash_map,btree --mix 90:10,10:90 $(PERFORMANCE) --json build/performance-mixes.json
	@build/bin/stillpoint bench report $(PERFORMANCE_FILES) --html build/report
	@build/bin/stillpoint bench report $(PERFORMANCE_FILES) --markdown docs/measured/tables/workloads.md

QUICK ?=
papers: build-bench
	$(call say,Measuring the figures and tables of the papers)
	@python3 -B bench/run.py papers $(QUICK) --json build/papers.json --markdown docs/measured/tables/papers.md

# Builds the servers where they are missing.
memcached-bench: setup-memcached build-bench
	$(call say,Measuring memcached with its items in a pool against memcached)
	@python3 -B integrations/memcached/build.py
	@python3 -B bench/run.py memcached $(QUICK) --json build/memcached.json --markdown $(if $(QUICK),build,docs/measured/tables)/memcached.md

memcached-demo: setup-memcached build
	@python3 -B integrations/memcached/build.py --variants stock,durable
	$(call say,Demo: a memcached with a million pairs killed under load and started again)
	@python3 -B scripts/memcached_demo.py $(QUICK)

memcached-soak: KILLS = 500
memcached-soak: setup-memcached build-tests
	@python3 -B integrations/memcached/build.py --variants durable
	$(call say,Killing a durable memcached $(KILLS) times under mixed load)
	@python3 -B tests/integrations/memcached/soak.py --kills $(KILLS) --seed $(SEED) --limit-s $(LIMIT_S)

kyotocabinet-kills: KILLS = 100
kyotocabinet-kills: setup-test build-tests
	@python3 -B integrations/kyotocabinet/build.py durable hooks/ledger
	$(call say,Killing a program on Kyoto Cabinet's databases $(KILLS) times)
	@python3 -B tests/integrations/kyotocabinet/kills.py --kills $(KILLS) --seed $(SEED)

install: build
	@cmake --install build --prefix "$(PREFIX)"

# Needs no build: the list of the files lies in PREFIX/share/stillpoint.
uninstall:
	@cmake -DPREFIX="$(PREFIX)" -P cmake/Uninstall.cmake

# For Debian and its relatives. With the durable memcached, if integrations/memcached/build.py has built it.
packages: build
	@cpack -G DEB --config build/CPackConfig.cmake -B build/packages
	@rm -rf build/packages/_CPack_Packages
	@ls -l build/packages/*.deb

# Records the binary interface: for a new function, or a new major version.
abi: setup-test build
	@python3 -B scripts/abi.py --update

clean:
	rm -rf build build-asan build-fuzz build-tsan build-debug build-clang
