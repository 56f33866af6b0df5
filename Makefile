# Every target sets up what it needs; nothing has to be run before another.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
TORCH  ?= torch==2.13.0
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
BROWSER := $(VENV)/browser.txt
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: help install browser demo test test-slow check format bench docs clean

help:              ## this list
	@sed -n 's/^\([a-z-]*\): .*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

install: $(READY)  ## make .venv with the hitin command and the tools of the tests

# torch first and pinned: a looser spelling may bring gigabytes of CUDA packages to a machine without a GPU.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hitin needs Python 3.11 or newer; say: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --upgrade 'pip>=25.1'
	$(PIP) install --quiet --constraint constraints.txt '$(TORCH)'
	$(PIP) install --quiet --constraint constraints.txt --editable . --group dev
	touch $@

# Its path, or why there is none: the tests that need one then skip with that reason.
$(BROWSER): $(READY)
	$(BIN)/python -m tests.browser_setup

browser: $(READY)  ## find or install a Chromium for the tests of pages
	rm -f $(BROWSER)
	$(MAKE) --no-print-directory $(BROWSER)
	@cat $(BROWSER)

demo: $(READY)     ## train on ICD-10-CM, which comes with the package, and show what the model makes of plain words
	$(BIN)/hitin demo

check: $(READY)    ## lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: check $(BROWSER) ## lint, types and tests
	$(BIN)/pytest -n auto -m 'not slow'

test-slow: $(READY) $(BROWSER) ## the long harnesses at full size
	$(BIN)/pytest -m slow

format: $(READY)   ## rewrite the code the way `make check` wants it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)    ## measure on the CPU; the tables are printed, and kept in runs/bench
	mkdir -p runs/bench
	set -e; for name in reading coding_tree structure_encoder decoding scoring; do \
		$(BIN)/python benchmarks/$$name.py > runs/bench/$$name.md; cat runs/bench/$$name.md; echo; done
	set -e; for name in training_step training_speed inference growth; do \
		$(BIN)/python benchmarks/$$name.py --out runs/bench; echo; done

docs: $(READY)     ## build the documents into site/, the reference anew out of the code
	$(PIP) install --quiet --constraint constraints.txt --group docs
	$(BIN)/python docs/pictures/draw_coding_tree.py
	$(BIN)/python docs/write_reference.py
	$(BIN)/sphinx-build --quiet --fail-on-warning docs site

clean:             ## remove what the other targets made
	rm -rf $(VENV) site dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
