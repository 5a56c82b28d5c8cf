# Plainformer. `make` alone lists what there is.

# Candidates for the interpreter that makes the environment: the first usable one is taken.
PYTHON ?= python3 python3.13 python3.12 python3.11
PORT ?= 8000
# For `make bench`: the path of Tiny Shakespeare, the folder of Multi30k, and further options of benchmarks.run.
TEXT ?=
MULTI30K ?=
BENCH ?=
# For `make models`, `make slides` and `make notebooks`: only scripts, or chapters, whose names contain this word.
ONLY ?=
# For `make one`: a file of tests.
FILE ?=
# For `make mutants`: a room of the package, and which forty of its mutants.
ROOM ?= data
SEED ?= 0

BIN := .venv/bin
READY := .venv/.ready
PARITY := .venv-parity
PARITY_READY := $(PARITY)/.ready
LOCK := requirements.txt requirements-data.txt
PARITY_LISTS := $(wildcard tests/parity/requirements.txt benchmarks/requirements.txt)
BROWSER_READY := .venv/.browser-ready
BROWSER_LIST := tests/browser/requirements.txt

# The tests run in a worker per core, up to four.
# One that dies ends the run instead of leaving it to hang.
WORKERS := --numprocesses auto --maxprocesses 4 --max-worker-restart 0
PIP_INSTALL := -m pip install --quiet --no-compile --disable-pip-version-check --no-input
# The kernel that runs the chapters is the environment's, whatever else is installed on this machine.
export JUPYTER_PREFER_ENV_PATH := 1
# Most of the time goes into compiling. What a chapter or test has compiled, the next one finds in the user's cache, in
# whichever clone; programs belong to one lock and one kind of processor.
KIND := $(shell { cat $(LOCK); uname -m; grep -m 1 '^flags' /proc/cpuinfo; } 2> /dev/null | cksum | cut -d ' ' -f 1)
export JAX_COMPILATION_CACHE_DIR := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/plainformer/jax-$(KIND)
# Two may want the same program: one compiles it while the other is still writing it down, and nothing is wrong. Nor is
# it where no program can be kept, in a folder of somebody else's or on a full disk.
CACHE := persistent compilation cache entry:UserWarning
export PYTHONWARNINGS := ignore:Error reading $(CACHE),ignore:Error writing $(CACHE)
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS := 0
export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES := -1
# A training step frees and asks for hundreds of megabytes: glibc should keep them rather than hand each page back to
# the system and clear it anew. Measured at width 128: 40,760 page faults per step without, none with, and a third less
# processor time.
export MALLOC_TRIM_THRESHOLD_ := 4294967296
export MALLOC_MMAP_THRESHOLD_ := 1073741824
unexport MPLBACKEND
SHELL := /bin/bash

.DEFAULT_GOAL := help
.PHONY: style types floors spelling workflows
.PHONY: help book serve one test smoke check rooms words exercises devices tools mutants faults lint parity browser bench models notebooks
.PHONY: frames pdf slides german clean distclean

help:  ## list these commands
	@echo "Plainformer: an executable book on the transformer, and its package."
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "The environment (.venv) is made from requirements.txt when it is missing or out of date."
	@echo "PYTHON=python3.12 chooses the interpreter for it; 3.11, 3.12 and 3.13 are supported."

# One at a time in one clone. (Where there is no `flock`, as on a Mac, nothing watches.)
define alone
	mkdir -p build && exec 9> build/$(1).lock || exit 1; \
	if command -v flock > /dev/null && ! flock -n 9; then \
	  echo "$(1) is being made or tested by another command in this clone: wait until it is done." >&2; exit 1; fi
endef

# Plots as vectors. (Only here: a notebook's own pictures are not compared, and Jupyter's default is a bitmap.)
VECTORS := build/ipython/profile_default/ipython_kernel_config.py
$(VECTORS):
	@mkdir -p $(@D)
	@echo 'c.InlineBackend.figure_formats = ["svg"]' > $@

book: export IPYTHONDIR := $(CURDIR)/build/ipython
book: $(READY) $(VECTORS)  ## execute the chapters and build the site into _build/html
	@# What is dropped from the log: settings in full, and the kernel's remark that it listens on this machine.
	@# Sphinx does not repeat the warnings of a page that it need not read again, so a failed build must not
	@# leave behind what the next one would take for granted. The executed chapters are kept.
	@$(call alone,book); set -o pipefail; $(BIN)/jupyter-book build . -W -n --keep-going 2>&1 9>&- \
	  | grep --line-buffered -v -e 'ParserConfig(' -e 'Kernel is running over TCP without encryption' \
	  || { rm -rf _build/.doctrees; echo "make book: failed; the first WARNING, ERROR or Traceback above says why." >&2; exit 1; }

serve: book  ## build, then serve the site at http://localhost:8000 (PORT=... for another)
	@echo "http://localhost:$(PORT)  (Ctrl-C stops it)"
	@$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

# XLA's older way to machine code, in one piece: half the time for a program of a few operations, which nearly all of the
# tests' are. (It came to no more where a large one is optimised: measured on the tests of `fit`.)
one test rooms words exercises devices mutants faults: export XLA_FLAGS := --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1

# And programs without checks at run time, since JAX keeps none that calls back; those tests that ask for the checks run
# apart, in `make rooms`.
one test rooms words exercises devices tools mutants faults: export EQX_ON_ERROR := off

# Each worker takes whole files, so that the cells of a notebook stay in order, and takes them in the order that
# conftest.py gives them.
RUN := $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 15 --durations-min 2
WORDS := tests/test_wrong_calls.py tests/test_explained.py tests/generation/test_refusals.py
IN_OTHER_PARTS := $(addprefix --ignore ,tests/tools tests/exercises)

# What the tests of the package ask about. While it is as it was when they passed, only the book's are asked again.
OF_THE_BOOK := chapters tests/test_book.py tests/test_repository.py tests/test_notation.py
PROVEN = build/proven-$(shell find src tests tools lab $(LOCK) pyproject.toml Makefile -type f ! -name '*.pyc' -print0 \
  | LC_ALL=C sort -z | xargs -0 cksum | cksum | tr ' ' -)

one: $(READY)  ## one file of tests, with what is compiled already (FILE=tests/attention/test_relations.py)
	@test -n "$(FILE)" || { echo "make one: expected FILE=…, such as FILE=tests/attention/test_relations.py." >&2; exit 1; }
	$(BIN)/pytest $(FILE)

test: lint  ## the gate: lint, the tests that say whether something is broken, every chapter's notebook
	@$(call alone,test); proven='$(PROVEN)'; files='chapters tests'; \
	if test -e "$$proven"; then files='$(OF_THE_BOOK)'; \
	  echo "The package is as it was when its tests passed here: those of the book are asked."; fi; \
	$(BIN)/pytest $$files --nbval --only gate $(IN_OTHER_PARTS) $(RUN) 9>&- || exit 1; \
	mkdir -p build && rm -f build/proven-* && touch "$$proven"

smoke: $(BROWSER_READY)  ## the browser's part of the gate: every page opens, every live figure starts and answers
	@$(call alone,book); $(BIN)/pytest tests/browser -m smoke $(WORKERS) 9>&-

# Everything: the book, the gate, and the parts, each of which can be run alone.
PARTS := rooms words exercises devices tools parity faults browser
check:  ## everything: the gate and the parts rooms, words, exercises, devices, tools, parity, faults, browser; what each took
	@$(call alone,check); : > build/check.txt || exit 1; failed=; \
	for part in book test $(PARTS); do \
	  echo "=== make $$part"; \
	  TIMEFORMAT="$$(printf '%-10s' $$part) %0R s by the clock, %0U s of processor time"; \
	  { time { $(MAKE) --no-print-directory $$part 2>&1 9>&- || failed="$$failed $$part"; } ; } 2>> build/check.txt; \
	done; echo; $(BIN)/python tools/notebooks/recorded.py; echo; cat build/check.txt; \
	if test -n "$$failed"; then echo "make check: these parts failed:$$failed" >&2; exit 1; fi

rooms: $(READY)  ## what the gate leaves out of the tests of the package and of the book
	$(BIN)/pytest tests --only rest $(IN_OTHER_PARTS) $(addprefix --ignore ,$(WORDS)) $(RUN)
	EQX_ON_ERROR=raise $(BIN)/pytest tests -m run_time_check $(IN_OTHER_PARTS) $(RUN)

words: $(READY)  ## what messages say: wrong calls of every public name, the sentences that explain
	$(BIN)/pytest $(WORDS) --only rest $(RUN)

exercises: $(READY)  ## the exercises and the mistakes that they name
	$(BIN)/pytest tests/exercises $(RUN)

tools: $(READY)  ## what makes the book, and the stored models and records
	$(BIN)/pytest tests/tools lab $(RUN)

devices: $(READY)  ## eight devices that a process pretends to have
	$(BIN)/pytest tests/devices $(WORKERS) --dist loadfile

mutants: $(READY)  ## change forty things in a room, one at a time: which do its tests not see? (ROOM=data SEED=0)
	@$(BIN)/python -c 'import cosmic_ray' 2> /dev/null || $(BIN)/python $(PIP_INSTALL) cosmic-ray==8.7.0
	$(BIN)/python tools/mutants.py "$(ROOM)" --seed "$(SEED)"

faults: $(READY)  ## kill, interrupt and starve training in processes of its own: it goes on as if nothing had been
	$(BIN)/pytest tests/faults $(WORKERS)

CHECKS := style types floors spelling workflows
lint: $(READY)  ## format, style, types, import floors, spelling, workflow files
	@$(MAKE) --no-print-directory --jobs 2 --keep-going --output-sync=target $(CHECKS)
$(CHECKS): $(READY)  # each can be run alone

style:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
types:
	$(BIN)/mypy
floors:
	$(BIN)/lint-imports
spelling:
	$(BIN)/codespell
workflows:
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/zizmor --offline --quiet .github/workflows

notebooks: $(READY)  ## write the executed .ipynb beside each chapter (ONLY=relations for one)
	$(BIN)/python tools/notebooks/sync_notebooks.py $(ONLY)

frames: book $(BROWSER_READY)  ## photograph the live figures of the built site, widgets/*.png, and draw the card of shared links
	$(BIN)/python tools/photograph_figures.py
	$(BIN)/python tools/draw_card.py
	$(BIN)/python tools/draw_sheet.py

pdf: book $(BROWSER_READY)  ## print the whole book into _build/plainformer.pdf, with headless Chromium
	$(BIN)/python tools/make_pdf.py

slides: book  ## make slides of each chapter from its page, _build/slides (ONLY=depth for one)
	$(BIN)/python tools/make_slides.py $(ONLY)

german: book  ## put the chapters that are translated beside the English ones, _build/html/de
	$(BIN)/python tools/build_translation.py de

parity: $(PARITY_READY)  ## compare with PyTorch and Hugging Face (installs them into .venv-parity)
	$(PARITY)/bin/pytest tests/parity $(WORKERS) --dist loadfile

browser: book $(BROWSER_READY)  ## try the built site in headless Chromium
	@# They wait for frames more than they compute: four workers on two cores, too.
	@$(call alone,book); $(BIN)/pytest tests/browser $(WORKERS) --numprocesses 4 9>&-

models: $(READY)  ## train the stored models anew (ONLY=positions for one)
	$(BIN)/python -m lab.run $(ONLY)

bench: $(PARITY_READY)  ## time it against PyTorch and transformers, write benchmarks/RESULTS.md (TEXT=file MULTI30K=folder)
	$(PARITY)/bin/python -m benchmarks.run --text "$(TEXT)" --multi30k "$(MULTI30K)" $(BENCH)

clean:  ## remove what was built, and the caches
	rm -rf _build build appendix/cards drawings/*.svg .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

distclean: clean  ## remove the environments and what was compiled as well
	rm -rf .venv $(PARITY) "$(JAX_COMPILATION_CACHE_DIR)"

# --- environments -------------------------------------------------------------------------------------------
# `.ready` is written last. Without it an environment is unfinished and is made anew; with it, and a newer
# lock, it is brought up to date.

define make_environment
	@$(call alone,$(1)); fresh=; test -e $(1)/.ready || fresh=yes; \
	if test -n "$$fresh"; then \
	  for python in $(PYTHON); do \
	    if $$python -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	      2> /dev/null; then found=$$python; break; fi; \
	  done; \
	  if test -z "$$found"; then \
	    echo "Plainformer needs Python 3.11, 3.12 or 3.13 with venv, and none of '$(PYTHON)' is that:" \
	      "install one (on Debian or Ubuntu: apt install python3.12-venv) or name one" \
	      "(make book PYTHON=/path/to/python3.12)." >&2; exit 1; \
	  fi; \
	  echo "Making $(1) with $$found ($$($$found --version)): once, a few minutes ..."; \
	  $$found -m venv --clear $(1) || exit 1; \
	else echo "Bringing $(1) up to date with the lock ..."; fi; \
	$(1)/bin/python $(PIP_INSTALL) --require-hashes --requirement requirements.txt && \
	$(1)/bin/python $(PIP_INSTALL) --require-hashes --no-deps --requirement requirements-data.txt && \
	$(2) $(1)/bin/python $(PIP_INSTALL) --no-deps --no-build-isolation --editable . && \
	touch $(1)/.ready
endef

$(READY): $(LOCK)
	$(call make_environment,.venv,)

$(PARITY_READY): $(LOCK) $(PARITY_LISTS)
	$(call make_environment,$(PARITY),$(PARITY)/bin/python $(PIP_INSTALL) $(addprefix --requirement ,$(PARITY_LISTS)) &&)

# What drives a browser lies in .venv, beside the package that the site's numbers are compared with.
$(BROWSER_READY): $(READY) $(BROWSER_LIST)
	@$(BIN)/python $(PIP_INSTALL) --requirement $(BROWSER_LIST) && touch $@
