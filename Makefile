# `make demo` and `make test` do all their own set-up, in .venv, from a fresh clone with Python >= 3.10 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Everything goes through the pins; torch first and by its pin, so that no other package pulls another build in.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help setup demo test test-fast lint typecheck bench bench-atari bench-minatar bench-minatar-quick bench-ray clean

help:
	@echo "make demo       train GDI on MinAtar Breakout, live, in a few minutes (runs/demo)"
	@echo "make test       lint, types and all tests"
	@echo "make test-fast  the inner loop: all but Ray, the long Atari tables and kills"
	@echo "make bench      training speed beside Stable-Baselines3's PPO"
	@echo "make bench-atari  the same on Atari, beside sb3-contrib's RecurrentPPO"
	@echo "make bench-minatar-quick  GDI beside PPO on two MinAtar games, in minutes"
	@echo "make bench-minatar  the whole sweep with the paper's ablation afresh, in many hours; it resumes"
	@echo "make bench-ray  training speed on Ray beside the local runtime"
	@echo "make setup      only install, into .venv"
	@echo "make lint / typecheck / clean"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The core package: enough to train.
$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt
	@echo "Installing into $(VENV) (a minute or two, once)"
	$(PIP) torch
	$(PIP) -e .
	@touch $@

# Core, reports and the tools of development.
$(VENV)/.dev: $(VENV)/.core
	$(PIP) -e '.[report,video,ray,dev]'
	@touch $@

setup: $(VENV)/.dev

# A demo that was interrupted continues; one that is finished shows its result again.
demo: $(VENV)/.core
	$(BIN)/gdi train gdi-i3 --env MinAtar/Breakout-v0 --steps 600000 --seed 1 --run-dir runs/demo --resume

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: $(VENV)/.dev
	$(BIN)/mypy

test: lint typecheck
	$(BIN)/python -m pytest -n 2

test-fast: lint typecheck
	$(BIN)/python -m pytest -n 2 -m "not ray and not atari_tables and not kill"

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/speed.py

bench-atari: $(VENV)/.dev
	$(BIN)/python benchmarks/atari.py

bench-ray: $(VENV)/.dev
	$(BIN)/python benchmarks/ray_speed.py

# Both resume: what is finished is skipped, and Ctrl-C is safe.
bench-minatar: $(VENV)/.dev
	$(BIN)/python -m benchmarks.minatar_sweep --results runs/minatar/results
	$(BIN)/python -m benchmarks.minatar_sweep.analysis --results runs/minatar/results --out runs/minatar

bench-minatar-quick: $(VENV)/.dev
	$(BIN)/python -m benchmarks.minatar_sweep --quick
	$(BIN)/python -m benchmarks.minatar_sweep.analysis --results runs/minatar-quick/results --out runs/minatar-quick

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
