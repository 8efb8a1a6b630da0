"""Small runs of every preset, an undisturbed one of each to compare with, and the comparison."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import gdi
from faults.child import Ended, run_child
from gdi.config import Config
from gdi.presets import PRESETS, make_config
from gdi.runtime.checkpoint import CheckpointStore

STEPS = 1600
LOG_EVERY = 200
MINATAR, CARTPOLE = "MinAtar/Breakout-v0", "CartPole-v1"
SIZES: dict[str, dict[str, int]] = {
    "dqn": {
        **{"capacity_transitions": 600, "learn_start_transitions": 200, "batch_size_sequences": 8},
    },
    "ppo": {"sequence_steps": 8, "batch_size_sequences": 32, "replay": 2},
    "impala": {"sequence_steps": 5, "batch_size_sequences": 4},
}
GDI_SIZES = {"batch_size_sequences": 8, "sequence_steps": 5, "replay": 2, "replay_span_windows": 4}


def small(preset: str, env: str = MINATAR, steps: int = STEPS) -> Config:
    """Return a run of a few seconds with a checkpoint every few updates."""
    config = make_config(preset, env, steps=steps, seed=5)
    sizes = {name: value for name, value in SIZES.get(preset, GDI_SIZES).items() if hasattr(config.data, name)}
    return replace(
        config,
        env=replace(config.env, num_envs=8),
        network=replace(config.network, hidden_units=16),
        data=replace(config.data, **sizes),
        evaluation=replace(config.evaluation, every_steps=600, episodes=2),
        run=replace(config.run, log_every_steps=LOG_EVERY, checkpoint_every_steps=100, threads=1, device="cpu"),
    )


# Every preset where environments can be saved, and one run where they cannot.
CASES = {**{name: small(name) for name in PRESETS}, "gdi-i3 on CartPole": small("gdi-i3", CARTPOLE)}


def lines_of(run_dir: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        line.pop("clock")
    return lines


def newest(run_dir: Path) -> dict[str, Any]:
    state = CheckpointStore(run_dir / "checkpoints", 3, lambda text: None).newest()
    assert state is not None
    return state


def reference(name: str, config: Config, work: Path) -> Path:
    """Return the folder of an undisturbed run, which is trained once per campaign."""
    folder = work / "reference" / f"{name.replace(' ', '-')}-{config.steps}"
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        ended = run_child(lambda: int(not gdi.train(config, folder).finished), work / "output", 300)
        if ended.code != 0:
            raise RuntimeError(f"the undisturbed run of {name} failed: {ended.err}")
        (folder / "done").touch()
    return folder


def same_theta(run_dir: Path, other: Path) -> bool:
    a, b = (newest(folder)["system"]["learner"]["network"] for folder in (run_dir, other))
    return set(a) == set(b) and all(np.array_equal(a[name], b[name]) for name in a)


def difference(run_dir: Path, other: Path) -> str:
    """Return how a finished run differs from an undisturbed one, or an empty string."""
    if lines_of(run_dir) != lines_of(other):
        return "metrics.jsonl differs"
    if (run_dir / "episodes.csv").read_bytes() != (other / "episodes.csv").read_bytes():
        return "episodes.csv differs"
    return "" if same_theta(run_dir, other) else "θ differs"


def gap(run_dir: Path, config: Config) -> str:
    """Return what is missing or doubled in a finished run that cannot repeat exactly, or an empty string."""
    state, lines = newest(run_dir), lines_of(run_dir)
    if state["system"]["steps"] != config.steps or not state["run"]["finished"]:
        return f"it ended at {state['system']['steps']} steps"
    steps = [line["steps"] // LOG_EVERY for line in lines if line["kind"] == "train"]
    if steps != sorted(set(steps)):
        return f"log lines are doubled: {steps}"
    with (run_dir / "episodes.csv").open() as file:
        rows = len(list(csv.DictReader(file)))
    if rows != state["system"]["episodes"]:
        return f"episodes.csv has {rows} rows for {state['system']['episodes']} episodes"
    trained = int(state["system"]["learner"].get("trained_transitions", -1))
    wanted = config.data.trained_transitions(config.steps)
    return "" if trained == wanted else f"{trained} transitions were trained, not {wanted}"


def judge(ended: Ended, problem: str) -> tuple[str, str]:
    """Return the outcome of a trial, and its detail; ``problem`` is what was lost, or an empty string."""
    if ended.hung:
        return "hang", ended.err[-300:]
    if ended.has_traceback:
        return "traceback", ended.err[-600:]
    return ("lost", problem) if problem else ("survived", "")
