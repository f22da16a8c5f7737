# These do everything on a machine that has Python 3.11 and make:
#   make run    set up, then train a model on an embedded data set
#   make check  lint, types and the tests that a change touches, in under a minute
#   make test   lint, types and the whole test suite
# make docs builds the documentation, which make test does too.
SHELL  := /bin/sh
PYTHON ?= $(shell command -v python3.11 || command -v python3 || command -v python)
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.nlsf-installed
JOBS   ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

# One thread a process: the tests run in $(JOBS) processes, which would fight over the cores.
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: run check test lint types touched pytest docs format clean help
.DEFAULT_GOAL := help

help:
	@echo "make run     set up, train a model on the embedded digits graph, write its report page"
	@echo "make check   lint, types and the tests that a change touches, in under a minute"
	@echo "make test    set up, then lint, types and all tests (set NLSF_DATA for the tests on real data)"
	@echo "make docs    build the documentation, tutorials executed, into site/index.html"
	@echo "make format  rewrite the sources in the project's style"
	@echo "make clean   remove the environment and all caches"

run: $(STAMP)
	@echo "==> nlsf train digits"
	@$(BIN)/nlsf train digits

check: lint types touched

test: lint types pytest

lint: $(STAMP)
	@echo "==> lint"
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . \
	  || { echo "Lint found the lines above. Run 'make format', then mend what is left."; exit 1; }

types: $(STAMP)
	@echo "==> types"
	@$(BIN)/mypy || { echo "Mend the types that mypy names above."; exit 1; }

touched: $(STAMP)
	@echo "==> tests that the change touches"
	@$(THREADS) $(BIN)/python tests/touched.py \
	  || { echo "A test failed: its name stands above. Run it alone with '$(BIN)/pytest -k NAME'."; exit 1; }

pytest: $(STAMP)
	@echo "==> tests, in $(JOBS) processes"
	@$(THREADS) $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal --doctest-modules \
	  || { echo "A test failed: its name stands above. Run it alone with '$(BIN)/pytest -k NAME'."; exit 1; }

docs: $(STAMP)
	@echo "==> documentation"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet \
	  || { echo "The page that failed, or the warning, stands above."; exit 1; }
	@echo "Open site/index.html."

format: $(STAMP)
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "No Python found. Install Python 3.11 or newer, or say 'make PYTHON=/path/to/python3.11'."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "nlsf needs Python 3.11 or newer, and $(PYTHON) is older. Say 'make PYTHON=/path/to/python3.11'."; exit 1; }
	@echo "==> virtual environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
	  || { echo "Python's venv module does not work here. On Debian: apt-get install python3-venv."; exit 1; }
	@echo "==> installing the pinned packages (a few minutes the first time)"
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]' \
	  || { echo "The installation failed: see pip's message above. Check the network, then run make again."; exit 1; }
	@touch $(STAMP)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist site
