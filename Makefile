# fabricbench: `make demo` shows the main job on the embedded lab, `make test` proves that it works. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
# Modules are compiled once, not in each of thousands of starts, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE
DEMO ?= demo/$(shell date +%Y%m%d-%H%M%S)

# Kernels are built for all levels of the processor family; `make MARCH=native` builds them for this processor alone.
MARCH ?=
NATIVE := -C cmake.define.FABRICBENCH_MARCH=$(MARCH)

NATIVE_SOURCES := $(shell find native cmake CMakeLists.txt -type f 2>/dev/null)
# An editable install knows the files by name: where some came or went, it is made anew.
LAYOUT := $(VENV)/.layout-$(shell find src -name '*.py' | LC_ALL=C sort | cksum | cut -d' ' -f1)
BUILT_FOR := $(VENV)/.built-for-$(or $(MARCH),all)
# What a first run needs is built in a third of the time of everything; once everything is there it stays. `make demo` and `make test`
# are content with it.
FIRST := $(VENV)/.first
COMPLETE := $(VENV)/.complete
BUILT := $(if $(wildcard $(COMPLETE)),$(COMPLETE),$(FIRST))
INSTALL := PATH="$$PATH:$(CURDIR)/$(BIN)" tools/install -c constraints.txt --no-build-isolation $(NATIVE) -C cmake.define.FABRICBENCH_TESTS=OFF

.DEFAULT_GOAL := all
.PHONY: all wheel demo test proof test-units test-sanitized test-python test-rest style lint tidy format docs bench studies clean help

all: $(COMPLETE) $(VENV)/.tools ## set up the environment in .venv and build everything into it

$(VENV)/.environment: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "fabricbench needs Python 3.11 or newer, found " + sys.version)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing the packages that constraints.txt pins into $(VENV)"
	$(PIP) install -c constraints.txt 'pip>=25.1'
	tools/install --no-compile -c constraints.txt --group build
	touch $@

$(VENV)/.tools: $(VENV)/.environment
	tools/install --no-compile -c constraints.txt --group dev
	touch $@

$(LAYOUT): $(VENV)/.environment
	rm -f $(VENV)/.layout-*
	touch $@

$(BUILT_FOR): $(VENV)/.environment
	rm -f $(VENV)/.built-for-*
	touch $@

$(FIRST): $(VENV)/.environment $(LAYOUT) $(NATIVE_SOURCES)
	@echo "building what a first run needs"
	$(INSTALL) -C cmake.define.FABRICBENCH_KERNELS=OFF -C cmake.define.FABRICBENCH_MORE_DOORS=OFF -e .
	touch $@

$(COMPLETE): $(VENV)/.environment $(LAYOUT) $(BUILT_FOR) $(NATIVE_SOURCES)
	@echo "building the native part: about three minutes of two processors the first time"
	$(INSTALL) -C cmake.define.FABRICBENCH_KERNELS=ON -C cmake.define.FABRICBENCH_MORE_DOORS=ON -e .
	touch $@

wheel: all ## a wheel in wheel/ from what is built here: what other nodes install
	rm -rf wheel
	PATH="$$PATH:$(CURDIR)/$(BIN)" $(PIP) wheel --no-build-isolation $(NATIVE) --no-deps -w wheel .

demo: $(BUILT) ## two emulated fabrics on four virtual nodes: measured, compared, one dossier
	tools/demo $(BIN)/fabricbench $(DEMO)

test: style test-units test-python ## style, types, native and Python tests, a run of each kind: what a user wants to know

proof: all tidy test-sanitized test-rest ## everything else: kernels, sanitizers, clang-tidy, every MPI program, labs, clusters, guests, installations

test-units: $(BUILT) $(VENV)/.tools
	tools/test-native

test-sanitized: all
	tools/test-native --sanitized

# Three tests share two processors, since many wait. What starts a testbed and failed beside others is run once more by itself: it may
# have been late; its time limit ends the test
# and not its worker, whose file would begin again. What is timed has the machine to itself.
# A tour is a run of each kind.
# What needs every program is skipped by `make test` where there are those of a first run only, and run by `make proof`.
TOURED := (tour and not complete)
OF_TESTBEDS := (lab or cluster or matrix) and not (alone or $(TOURED))
OF_THE_REST := (mpi or slow or complete) and not (lab or cluster or matrix or alone or $(TOURED))
THREE_ON_TWO := $(shell n=$$(( ($$(nproc) * 3 + 1) / 2 )); echo $$(( n < 6 ? n : 6 )))

test-python: $(BUILT) $(VENV)/.tools
	$(BIN)/pytest -n $(THREE_ON_TWO) -m "not (lab or cluster or matrix or alone or mpi or slow or tour)"
	$(BIN)/pytest -m tour

test-rest: all
	$(BIN)/pytest -n $(THREE_ON_TWO) -m "$(OF_THE_REST)"
	$(BIN)/pytest -n $(THREE_ON_TWO) --dist loadfile --timeout-method=signal -m "$(OF_TESTBEDS)" || $(BIN)/pytest --last-failed -m "$(OF_TESTBEDS)"
	$(BIN)/pytest -m "alone and not tour"

style: $(BUILT) $(VENV)/.tools ## formatting, style, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $$(find native examples -name '*.?pp')

lint: style tidy ## the same and clang-tidy

tidy: all ## clang-tidy alone, over native/
	tools/tidy

format: all ## put Python and C++ into the house's format
	$(BIN)/ruff check --fix-only -q . || true
	$(BIN)/ruff format -q .
	$(BIN)/clang-format -i $$(find native examples -name '*.?pp')

docs: all ## regenerate schema/ and the table of patterns in native/
	$(BIN)/python -m fabricbench.record.generate_schemas schema

bench: all ## fabricbench beside its peers, and the lab against what was asked of it
	$(BIN)/python benchmarks/lab_truth.py
	$(BIN)/python -m benchmarks.lab_applications
	$(BIN)/python -m benchmarks.peers
	$(BIN)/python -m benchmarks.harness_share
	$(BIN)/python -m benchmarks.pattern_scale
	$(BIN)/python -m benchmarks.npb_speed
	$(BIN)/python -m benchmarks.npb_levels
	$(BIN)/python -m benchmarks.hpl_speed
	$(BIN)/python -m benchmarks.hpcg_speed
	$(BIN)/python benchmarks/store_scale.py
	$(BIN)/python benchmarks/compare_scale.py

studies: all ## five published studies measured again in the lab: half an hour; docs/studies.md has tables and plots of it
	$(BIN)/python -m benchmarks.studies --write docs/studies.md

clean: ## remove what was built here (not your runs)
	rm -rf $(VENV) build src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
