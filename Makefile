# One environment in .venv, always installed through constraints.txt. Needs python3 (3.11 to 3.13) and make.
#   make demo    train on built-in data, open the networks, write demo/report.html
#   make test    what guards a change         make check   format, lint, types, import contracts
#   make test-all   the slow tests as well: long interruptions, exhaustive grids, every experiment, the real datasets
#   make campaign   attack runs, files, threads and command lines: at most an hour, goes on where it was stopped
#   make gpu     the tests and benchmarks that need a GPU, at most eight minutes
#   make gpu-day HOURS=24   the trials of scale paper, four processes on one GPU
#   make bench   the benchmarks, printed      make wheel   build the wheel and try it on its own
#   make docs    the documentation site, in build/docs; runs its notebooks
#   make dist    build the sdist and the wheel twice, compare and check them
#   make reproduce-smoke   every experiment on made-up data
#   make clean   remove all that these made

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# Compiling all of torch's modules takes half the time of the installation; what is imported is compiled then.
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt

# The tests start many processes. Where Python is told to write no compiled files, each would compile all anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow test-fuzz test-all check format gpu gpu-day bench docs dist wheel reproduce-smoke clean campaign campaign-sample

help:
	@sed -n 's/^#  *make/make/p; s/^#   make/make/p' Makefile

setup: $(STAMP)

# The stamp is older than whatever names a dependency as soon as that changes, and is written only on success.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; (3, 11) <= v <= (3, 13) or sys.exit("unrolled needs Python 3.11 to 3.13, and $(PYTHON) is %d.%d; name another: make PYTHON=python3.12 ..." % v)'
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(INSTALL) -e '.[dev]'
	@touch $@

demo: $(STAMP)
	$(BIN)/unrolled demo

# One process a core; every process computes with one thread (tests/conftest.py). A file's tests run in one process,
# which trains what they share once.
test: $(STAMP)
	$(BIN)/pytest -n auto --dist loadfile -m "not slow and not data"

# A process that has ended its half takes of the other's: tests that share a training stay together.
test-slow: $(STAMP)
	$(BIN)/pytest -n auto --dist worksteal -m "(slow or data) and not fuzz"

test-fuzz: $(STAMP)
	$(BIN)/pytest -n auto -m fuzz

test-all: test test-slow test-fuzz

# Without its cache: ruff keeps a verdict on the order of imports that a new or moved file elsewhere has changed.
check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check --no-cache .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Every test and benchmark that needs a GPU, in at most eight minutes.
gpu: $(STAMP)
	@$(BIN)/python -c 'import sys, torch; torch.cuda.is_available() or sys.exit("make gpu: torch finds no GPU on this machine")'
	timeout 240 $(BIN)/pytest -m gpu
	timeout 240 $(BIN)/python benchmarks/gpu.py

# First seeds come first; a stopped trial continues. The estimate needs some minutes.
HOURS ?= 24
gpu-day: $(STAMP)
	@$(BIN)/python -c 'import sys, torch; torch.cuda.is_available() or sys.exit("make gpu-day: torch finds no GPU on this machine")'
	mkdir -p build && $(BIN)/unrolled reproduce --scale paper --estimate | tee build/gpu-hours.txt
	for process in 1 2 3 4; do OMP_NUM_THREADS=1 $(BIN)/unrolled reproduce --scale paper --hours $(HOURS) & sleep 20; done; wait

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --no-cache --fix .

bench: $(STAMP)
	$(BIN)/python benchmarks/decompose.py
	$(BIN)/python benchmarks/cells.py
	$(BIN)/python benchmarks/training.py

campaign: $(STAMP)
	$(BIN)/python campaign --write

# What CI runs: every twentieth case, without the docs.
campaign-sample: $(STAMP)
	$(BIN)/python campaign --share 0.05 --minutes 4 --state build/campaign-sample

reproduce-smoke: $(STAMP)
	$(BIN)/unrolled reproduce --all --scale smoke --results build/smoke --figures build/smoke/figures

# OMP_NUM_THREADS: the networks of the notebooks are small; more threads slow them down.
docs: $(VENV)/.installed-docs
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html docs build/docs
	@echo "documentation: build/docs/index.html"

dist: $(VENV)/.installed-release
	.ci/dist $(PYTHON)

$(VENV)/.installed-%: $(STAMP)
	$(INSTALL) -e '.[$*]'
	@touch $@

wheel: $(STAMP)
	.ci/wheel $(PYTHON)

clean:
	rm -rf $(VENV) .venv-wheel dist build demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
