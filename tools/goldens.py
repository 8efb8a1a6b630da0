#!/usr/bin/env python
"""Proves that a refactoring leaves runs bit-equal.

    python tools/goldens.py [--base COMMIT] [--cases a,b] [-j N]

Tests show that the components are correct, but many of them would pass with other numbers. This tool shows that the
numbers are the same. It makes tiny runs from a worktree of the base commit and from the working tree, and compares
them. The comparison covers θ after each of the first updates, the logs, the newest checkpoint, and the actions of the
agent loaded from it.

Both trees get their config as ``config.json`` text of format 1, which the base commit writes. The driver never imports
gdi. Every run is a separate process, which finds its tree's package by PYTHONPATH.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "data" / "format1"
BASE_COMMIT = "a6c9eb9"
# Later updates would only repeat what the checkpoint shows.
RECORDED_UPDATES = 20
WORKER_SECONDS = 900
PLAYED_STEPS, PLAYED_EPISODE_STEPS = 30, 10
PLAYED_INDEX = (1.5, 4.0, 0.25)
# Values that depend on timing: seconds, and the length of the log that holds them.
WALL_CLOCK = ("/run/seconds", "/run/log/metrics.jsonl")
NORMALIZED = {"hns", "hwrns", "saber"}
WINDOW_KEYS = {"obs", "episode_start", "valid", "action", "index", "behavior_prob", "previous_action"}

Array = NDArray[Any]
Tree = dict[str, Any]


@dataclass(frozen=True)
class Session:
    """One call of ``gdi.train``; every call except the first resumes."""

    stop: int = 0
    """Stop at this many steps; 0 trains to the end."""
    runtime: str = "local"
    learners: int = 1
    base_only: bool = False
    """Only the base tree runs it, and both continue from its run folder, because old runs must resume."""
    poison: tuple[int, ...] = ()
    """Calls of ``Learner.update`` that get a NaN or infinite θ, so that the run diverges exactly there."""


@dataclass(frozen=True)
class Case:
    """A tiny run: a fixture, its overrides, and the sessions in which it is trained."""

    name: str
    fixture: str
    overrides: dict[str, Any] = field(default_factory=dict)
    sessions: tuple[Session, ...] = (Session(),)
    plays: bool = True
    """False if the agent is not worth loading, because its θ is NaN or infinite."""

    @property
    def needs_ray(self) -> bool:
        return any(session.runtime == "ray" for session in self.sessions)


TINY: dict[str, Any] = {
    "seed": 1,
    "steps": 600,
    "env.num_envs": 4,
    "network.hidden_units": 16,
    "learner.batch_size_sequences": 4,
    "learner.sequence_steps": 5,
    "learner.replay": 2,
    "learner.replay_span_windows": 2,
    "learner.warmup_updates": 5,
    "evaluation.every_steps": 350,
    "evaluation.episodes": 3,
    "run.log_every_steps": 150,
    "run.checkpoint_every_steps": 200,
    "run.threads": 1,
    "run.device": "cpu",
}
SHORT = {"steps": 300, "evaluation.every_steps": 180}
SEED_2 = {"seed": 2, "env.num_envs": 3, "learner.batch_size_sequences": 5, "learner.replay": 3}
LSTM = {"network.lstm_units": 8, "learner.burn_in_steps": 2}
ATARI = {
    **LSTM,
    **SHORT,
    "env.max_episode_steps": 12,  # so that episodes end within the run
    "learner.sequence_steps": 6,
    "evaluation.episodes": 2,
    "run.log_every_steps": 100,
    "run.checkpoint_every_steps": 100,
}
DYNAMICS = {"learner.forward_dynamics_scale": 0.1, "learner.inverse_dynamics_scale": 0.1}
OVERLAP = {"run.overlap": True, "learner.workers": 2, "learner.batch_size_sequences": 5}
LOG_AXES = {
    f"index_space.{axis}.{name}": value
    for axis in ("inverse_tau_1", "inverse_tau_2")
    for name, value in (("coordinate", "log"), ("high", 300.0), ("block_width", 6.0))
}
LINEAR_AXES = {f"index_space.{axis}.coordinate": "linear" for axis in ("inverse_tau_1", "inverse_tau_2")}
DIVERGES = {"learner.learning_rate": 1e30, "learner.max_nonfinite_updates": 1, "learner.batch_size_sequences": 2}
POISONED = {"learner.max_nonfinite_updates": 1, "learner.batch_size_sequences": 2}
MIDWAY = (Session(stop=250), Session())
FROM_BASE = (Session(stop=250, base_only=True), Session())

CASES = [
    *(
        Case(f"classic-{preset}", f"{preset}-classic")
        for preset in ("gdi-i3", "gdi-h3", "fixed", "random", "boltzmann", "epsilon-greedy")
    ),
    Case("classic-gdi-i3-seed-2", "gdi-i3-classic", SEED_2),
    Case("classic-gdi-h3-seed-2", "gdi-h3-classic", SEED_2),
    Case("minatar-gdi-i3", "gdi-i3-minatar"),
    Case("minatar-gdi-h3", "gdi-h3-minatar"),
    Case("minatar-gdi-i3-seed-2", "gdi-i3-minatar", SEED_2),
    Case("minatar-gdi-h3-seed-2", "gdi-h3-minatar", SEED_2),
    Case("lstm-burn-in-i3", "gdi-i3-minatar", LSTM),
    Case("lstm-burn-in-h3", "gdi-h3-minatar", LSTM),
    Case("lstm-without-burn-in", "gdi-i3-classic", {"network.lstm_units": 8}),
    # This burn-in is longer than a window, so it holds whole episodes and the resets between them.
    Case("lstm-long-burn-in", "gdi-i3-classic", {**LSTM, "learner.burn_in_steps": 4, "env.max_episode_steps": 6}),
    Case("atari-stack-burn-in", "gdi-i3-atari-cpu", ATARI),
    # The paper's own settings: the deep torso, dynamics tasks, weight decay, overlap.
    Case("atari-paper", "gdi-h3-paper", {**ATARI, "steps": 200, "evaluation.every_steps": 150}),
    Case("overlap-workers", "gdi-i3-minatar", OVERLAP),
    Case("overlap-lstm", "gdi-h3-minatar", {**LSTM, "run.overlap": True}),
    # These are also the only chunked batches of a tiny run: ⌈5/2⌉ and 2 sequences. With a single worker, a batch is
    # chunked only above 2 GiB of activations, and no setting changes that.
    Case("workers", "gdi-i3-classic", {"learner.workers": 2, "learner.batch_size_sequences": 5}),
    Case("per-environment", "gdi-i3-classic", {"controller.per_environment": True}),
    Case("multiplicative-weights", "gdi-i3-classic", {"controller.kind": "multiplicative-weights"}),
    Case("literal-offsets", "gdi-i3-classic", {"controller.offset_mode": "literal"}),
    Case("log-axis", "gdi-i3-classic", LOG_AXES),
    Case("linear-axis", "gdi-i3-minatar", LINEAR_AXES),
    # 607 steps are 30 windows of 20 and 7 more. The run ends inside a window, inside a step, and with a smaller batch.
    Case("partial-last-batch", "gdi-i3-classic", {"steps": 607, "learner.batch_size_sequences": 3}),
    Case("partial-last-batch-lstm", "gdi-i3-minatar", {**LSTM, "steps": 607, "learner.batch_size_sequences": 3}),
    Case("truncation", "gdi-i3-classic", {"env.max_episode_steps": 7}),
    Case("truncation-lstm", "gdi-h3-minatar", {**LSTM, "env.max_episode_steps": 9}),
    Case("termination-and-truncation", "gdi-i3-classic", {"env.max_episode_steps": 12, "learner.sequence_steps": 4}),
    Case("retrace-sarsa", "gdi-i3-classic", {"learner.retrace_form": "sarsa", "env.max_episode_steps": 12}),
    Case("q-with-gradient", "gdi-h3-classic", {"learner.q_stop_gradient": False}),
    Case("shared-torso", "gdi-h3-minatar", {"network.shared_torso": True}),
    Case("dynamics-i3", "gdi-i3-classic", {**DYNAMICS, "env.max_episode_steps": 12}),
    Case("dynamics-h3-lstm", "gdi-h3-minatar", {**DYNAMICS, **LSTM}),
    Case("weight-decay", "gdi-i3-classic", {"learner.weight_decay": 0.01}),
    Case("push-and-pull", "gdi-i3-minatar", {"learner.push_every_updates": 3, "learner.pull_every_steps": 4}),
    Case("bfloat16", "gdi-i3-minatar", {"run.precision": "bfloat16", **SHORT}),
    Case("stopped-midway", "gdi-i3-minatar", LSTM, MIDWAY),
    # These environments cannot be saved, so new episodes start.
    Case("stopped-midway-classic", "gdi-i3-classic", LSTM, MIDWAY),
    Case("from-base-lstm", "gdi-i3-minatar", LSTM, FROM_BASE),
    Case("from-base-lstm-h3-truncated", "gdi-h3-minatar", {**LSTM, "env.max_episode_steps": 9}, FROM_BASE),
    Case("from-base-per-environment", "gdi-i3-minatar", {"controller.per_environment": True}, FROM_BASE),
    Case("from-base-overlap", "gdi-i3-minatar", {**OVERLAP, **LSTM}, FROM_BASE),
    Case(
        "from-base-multiplicative-weights", "gdi-i3-classic", {"controller.kind": "multiplicative-weights"}, FROM_BASE
    ),
    Case("from-base-atari", "gdi-i3-atari-cpu", ATARI, (Session(stop=120, base_only=True), Session())),
    Case("diverged", "gdi-i3-minatar", DIVERGES, (Session(), Session()), plays=False),
    # Not with overlap: the base keeps the episodes of the window played meanwhile, and this tree takes it back.
    Case("diverged-then-finished", "gdi-i3-minatar", POISONED, (Session(poison=(12,)), Session())),
    Case("diverged-in-base", "gdi-i3-minatar", POISONED, (Session(poison=(12,), base_only=True), Session())),
    Case(
        "ray-and-back",
        "gdi-i3-minatar",
        LSTM,
        (Session(stop=200), Session(stop=400, runtime="ray"), Session()),
    ),
    Case("ray-two-learners", "gdi-i3-minatar", SHORT, (Session(runtime="ray", learners=2),)),
]


def config_text(case: Case) -> str:
    """Return the case's ``config.json`` of format 1.

    A field that format 1 does not have is an error in the case.
    """
    config = json.loads((FIXTURES / f"{case.fixture}.json").read_text(encoding="utf-8"))
    for dotted, value in {**TINY, **case.overrides}.items():
        *sections, name = dotted.split(".")
        owner = config
        for section in sections:
            owner = owner[section]
        if name not in owner:
            raise KeyError(f"{case.name}: format 1 has no field {dotted}")
        owner[name] = value
    return json.dumps(config, indent=2) + "\n"


# The code from here on runs one case with one tree in its own process. Only this code imports gdi.


class StopAt:
    """A console that stops the run, with a save, at a number of steps."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def event(self, event: dict[str, Any]) -> None:
        if self._steps and event["kind"] == "progress" and event["steps"] >= self._steps:
            self._steps = 0  # a second signal would not wait for the save
            os.kill(os.getpid(), signal.SIGINT)

    def episode(self, steps: int, episode: Any) -> None: ...

    def close(self) -> None: ...


def digest_of(network: Any) -> str:
    """Return the SHA-256 of all parameters, by name."""
    digest = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


@contextmanager
def not_finite(network: Any) -> Iterator[None]:
    """Put NaN into θ.

    This does not depend on the layout of a batch, so it works in any tree.
    """
    import torch

    parameter = next(iter(network.parameters()))
    before = parameter.detach().clone()
    with torch.no_grad():
        parameter.fill_(float("nan"))
    try:
        yield
    finally:
        with torch.no_grad():
            parameter.copy_(before)


@contextmanager
def recorded_updates(path: Path, poison: tuple[int, ...]) -> Iterator[None]:
    """Write the digest of θ after each of the first updates to a file, and make those of ``poison`` fail."""
    from gdi.learner import Learner

    original, calls = Learner.update, itertools.count()

    def update(self: Any, *args: Any, **options: Any) -> Any:
        call = next(calls)
        try:
            with not_finite(self.network) if call in poison else nullcontext():
                return original(self, *args, **options)
        finally:
            if call < RECORDED_UPDATES:
                with path.open("a", encoding="utf-8") as file:
                    file.write(digest_of(self.network) + "\n")

    patched: Any = Learner
    patched.update = update
    try:
        yield
    finally:
        patched.update = original


def train_session(config: Any, run: Path, session: Session, *, resume: bool) -> dict[str, Any]:
    """Train, and return how the run ended.

    Divergence is a valid end. Any other error ends the process.
    """
    import gdi
    from gdi.placement import PlacementConfig

    options: dict[str, Any] = {"runtime": session.runtime}
    if session.runtime == "ray":
        options["placement"] = PlacementConfig(lockstep=True, learners=session.learners)
    try:
        result = gdi.train(config, run, resume=resume, console=StopAt(session.stop), **options)
    except Exception as error:
        if type(error).__name__ not in ("DivergenceError", "Diverged"):  # the base commit has the older name
            raise
        return {"diverged": True}
    return {"steps": result.steps, "updates": result.updates, "frames": result.frames, "finished": result.finished}


def observations(shape: tuple[int, ...], dtype: Any, count: int) -> Iterator[Array]:
    """Return the same noise in every tree."""
    rng, kind = np.random.default_rng(0), np.dtype(dtype)
    for _ in range(count):
        if kind == np.bool_:
            yield rng.integers(0, 2, shape).astype(np.bool_)
        elif kind == np.uint8:
            yield rng.integers(0, 256, shape).astype(np.uint8)
        else:
            yield rng.standard_normal(shape).astype(kind)


def index_of(values: tuple[float, ...]) -> Any:
    """Return λ as this tree expects it: the base tree has a class for it, others a plain tuple."""
    import importlib

    try:
        return importlib.import_module("gdi.types").Index(*values)
    except (ImportError, AttributeError, TypeError):
        return values


def play(run: Path) -> dict[str, Any]:
    """Return evaluations and actions of the agent that is loaded from the run."""
    import gdi

    agent = gdi.load(run, seed=5)
    actions = []
    frames = observations(agent.spec.frame_shape, agent.spec.observation_dtype, PLAYED_STEPS)
    for t, frame in enumerate(frames):
        if t % PLAYED_EPISODE_STEPS == 0:
            agent.reset()
        actions.append(agent.act(frame, float(t % 3 - 1)))
    return {
        "evaluation": agent.evaluate(episodes=3, seed=3).to_dict(),
        "evaluation with an index": agent.evaluate(episodes=3, seed=4, index=index_of(PLAYED_INDEX)).to_dict(),
        "evaluation of the best": gdi.load(run, best=True).evaluate(episodes=3, seed=3).to_dict(),
        "actions": actions,
    }


def work(job: Tree) -> None:
    """Run the sessions and the agent in a worker process; the judged tree also compares the checkpoints."""
    import gdi
    from gdi.config import config_from_json

    found, wanted = Path(gdi.__file__).resolve(), Path(job["source"]).resolve()
    assert found.is_relative_to(wanted), f"gdi is that of {found}, not of {wanted}"
    folder = Path(job["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    config, run = config_from_json(job["config"]), folder / "run"
    for number, settings in enumerate(job["sessions"]):
        session = Session(**{**settings, "poison": tuple(settings["poison"])})
        if session.base_only and not job["is_base"]:
            continue
        with recorded_updates(folder / f"updates-{number}.txt", session.poison):
            outcome = train_session(config, run, session, resume=number > 0)
        write_json(folder / f"outcome-{number}.json", outcome)
        if session.base_only:
            shutil.copytree(run, Path(job["other"]) / "run")
    if job["plays"]:
        write_json(folder / "agent.json", play(run))
    if not job["is_base"]:
        write_json(folder / "checkpoint.json", checkpoint_difference(Path(job["other"]) / "run", run))


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


# The worker of the judged tree compares checkpoints, because it can read them. The driver compares the rest.


def checkpoint_difference(base: Path, tree: Path) -> str | None:
    """Return the first leaf in which the newest checkpoints differ, or None."""
    from gdi.runtime.checkpoint import read_checkpoint

    names = [[path.name for path in sorted((run / "checkpoints").glob("step-*"))] for run in (base, tree)]
    if names[0] != names[1]:
        return f"checkpoints are {names[1]}, not {names[0]}"
    marks = [run / "checkpoints" / "best.json" for run in (base, tree)]
    best = [read_json(mark)["checkpoint"] if mark.exists() else None for mark in marks]
    if best[0] != best[1]:
        return f"the best checkpoint is {best[1]}, not {best[0]}"
    states = [normalized(read_checkpoint(run / "checkpoints" / names[0][-1])) for run in (base, tree)]
    return next(differing_leaves(*states), None)


def normalized(tree: Any, name: str = "") -> Any:
    """Return the tree with zeros for untrained steps, because their content may change freely."""
    if isinstance(tree, list):
        return [normalized(value) for value in tree]
    if not isinstance(tree, dict):
        return tree
    tree = {key: normalized(value, key) for key, value in tree.items()}
    if set(tree) >= WINDOW_KEYS:
        return normalized_window(tree)
    if name == "stream" and "previous_action" in tree:
        return {**tree, "previous_action": np.where(tree["episode_start"], 0, tree["previous_action"])}
    return tree


def normalized_window(window: Tree) -> Tree:
    """Drop action, μ and λ of invalid steps, λ of the bootstrap, and the action before a start."""
    valid, starts = np.asarray(window["valid"]), np.asarray(window["episode_start"])
    length = len(valid)
    forgotten = starts.copy()
    forgotten[1:] |= ~valid
    return {
        **window,
        "action": np.where(valid, window["action"], 0),
        "behavior_prob": np.where(valid, window["behavior_prob"], np.float32(0)),
        "index": np.where(valid[..., None], window["index"][:length], np.float32(0)),
        "previous_action": np.where(forgotten, 0, window["previous_action"]),
    }


def differing_leaves(base: Any, tree: Any, path: str = "") -> Iterator[str]:
    """Yield each leaf that differs, with the kind of difference: place, dtype, shape or bytes."""
    if path in WALL_CLOCK:
        return
    if isinstance(base, dict) and isinstance(tree, dict):
        if path == "/run/evaluation":
            base, tree = in_common(base, tree)
        for key in [*base, *(key for key in tree if key not in base)]:
            if key not in base or key not in tree:
                yield f"checkpoint leaf {path}/{key} is only in the {'tree' if key in tree else 'base'}"
            else:
                yield from differing_leaves(base[key], tree[key], f"{path}/{key}")
    elif isinstance(base, list) and isinstance(tree, list) and len(base) == len(tree):
        for number, (one, other) in enumerate(zip(base, tree, strict=True)):
            yield from differing_leaves(one, other, f"{path}/{number}")
    elif isinstance(base, np.ndarray) and isinstance(tree, np.ndarray):
        yield from differing_arrays(base, tree, path)
    elif type(base) is not type(tree) or repr(base) != repr(tree):
        yield f"checkpoint leaf {path} is {short(tree)}, not {short(base)}"


def differing_arrays(base: Array, tree: Array, path: str) -> Iterator[str]:
    kinds = [f"{array.dtype} {array.shape}" for array in (base, tree)]
    if kinds[0] != kinds[1]:
        yield f"checkpoint leaf {path} is {kinds[1]}, not {kinds[0]}"
    elif base.tobytes() != tree.tobytes():
        count = int((base != tree).sum())
        yield f"checkpoint leaf {path} differs in {count} of {base.size} values"


def in_common(base: Tree, tree: Tree) -> tuple[Tree, Tree]:
    """Restrict two evaluations to what both report.

    A tree may report more than the base, and it withholds scores under a changed protocol. These follow from the mean.
    """
    keys = [key for key in base if key in tree and not (key in NORMALIZED and tree[key] is None)]
    assert "mean" in keys, "an evaluation without its mean"
    return {key: base[key] for key in keys}, {key: tree[key] for key in keys}


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def difference(base: Path, tree: Path) -> str | None:
    """Return the first difference between two finished sides of a case, or None.

    θ says most, so it comes first.
    """
    found = itertools.chain(
        update_differences(base, tree),
        outcome_differences(base, tree),
        episode_differences(base / "run" / "episodes.csv", tree / "run" / "episodes.csv"),
        metric_differences(base / "run" / "metrics.jsonl", tree / "run" / "metrics.jsonl"),
        filter(None, [read_json(tree / "checkpoint.json")]),
        agent_differences(base / "agent.json", tree / "agent.json"),
    )
    return next(found, None)


def outcome_differences(base: Path, tree: Path) -> Iterator[str]:
    for path in sorted(tree.glob("outcome-*.json")):
        expected, found = read_json(base / path.name), read_json(path)
        if expected != found:
            yield f"session {path.stem.removeprefix('outcome-')} ended with {found}, not {expected}"


def update_differences(base: Path, tree: Path) -> Iterator[str]:
    """Yield differences of θ.

    Sessions on Ray have no such files, because their learners are other processes.
    """
    for outcome in sorted(tree.glob("outcome-*.json")):
        session = outcome.stem.removeprefix("outcome-")
        paths = [folder / f"updates-{session}.txt" for folder in (base, tree)]
        expected, found = (path.read_text().split() if path.exists() else [] for path in paths)
        where = "" if session == "0" else f" of session {session}"
        for number, (one, other) in enumerate(zip(expected, found, strict=False), 1):
            if one != other:
                yield f"theta differs after update {number}{where}"
        if len(expected) != len(found):
            yield f"{len(found)} updates{where}, not {len(expected)}"


def episode_differences(base: Path, tree: Path) -> Iterator[str]:
    if base.read_bytes() != tree.read_bytes():
        lines = itertools.zip_longest(base.read_text().splitlines(), tree.read_text().splitlines())
        number = next((number for number, (one, other) in enumerate(lines, 1) if one != other), 0)
        yield f"episodes.csv differs in line {number}"


def metric_differences(base: Path, tree: Path) -> Iterator[str]:
    expected, found = (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] for path in (base, tree)
    )
    for number, (one, other) in enumerate(zip(expected, found, strict=False), 1):
        for line in (one, other):
            line.pop("clock")
            line.pop("collector/bytes", None)  # windows store λ for one more row than in format 1
        if one["kind"] == other["kind"] == "evaluation":
            one, other = in_common(one, other)
        for key in [*one, *(key for key in other if key not in one)]:
            if repr(one.get(key)) != repr(other.get(key)):  # as text, so that NaN equals itself and 1 differs from 1.0
                yield f"metrics.jsonl line {number}: {key} is {short(other.get(key))}, not {short(one.get(key))}"
    if len(expected) != len(found):
        yield f"metrics.jsonl has {len(found)} lines, not {len(expected)}"


def agent_differences(base: Path, tree: Path) -> Iterator[str]:
    if not base.exists():
        return
    expected, found = read_json(base), read_json(tree)
    for name, one in expected.items():
        other = found[name]
        if isinstance(one, dict):
            one, other = in_common(one, other)
        if one != other:
            yield f"agent: {name} is {short(other)}, not {short(one)}"


def run_worker(case: Case, tree: Path, folder: Path, other: Path, *, is_base: bool) -> str | None:
    """Run a case with one tree in its own process; return the failure, if any."""
    job = {
        "source": str(tree / "src"),
        "config": config_text(case),
        "folder": str(folder),
        "other": str(other),
        "sessions": [asdict(session) for session in case.sessions],
        "plays": case.plays,
        "is_base": is_base,
    }
    folder.mkdir(parents=True, exist_ok=True)  # the base may have put a run there
    write_json(folder / "job.json", job)
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    command = [sys.executable, __file__, "--job", str(folder / "job.json")]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=WORKER_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {WORKER_SECONDS} s"
    if done.returncode == 0:
        return None
    (folder / "stderr.txt").write_text(done.stderr, encoding="utf-8")
    told = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return told[-1]


def judge(case: Case, base: Path, tree: Path, folder: Path) -> str | None:
    """Run both sides of a case; return the first difference, or None.

    The base goes first, because the tree may continue its runs.
    """
    sides = folder / case.name / "base", folder / case.name / "tree"
    failure = run_worker(case, base, sides[0], sides[1], is_base=True)
    if failure is not None:
        return f"the base's run failed: {failure}"
    failure = run_worker(case, tree, sides[1], sides[0], is_base=False)
    if failure is not None:
        return f"the tree's run failed: {failure}"
    try:
        return difference(*sides)
    # A file may be missing, for example. One case must not end the others.
    except Exception as error:
        return f"cannot be compared: {error!r}"


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """Check out the commit in a temporary folder."""
    git = ["git", "-C", str(ROOT), "worktree"]
    with tempfile.TemporaryDirectory(prefix="goldens-") as temporary:
        path = Path(temporary) / "base"
        subprocess.run([*git, "add", "--quiet", "--detach", str(path), commit], check=True)
        try:
            yield path
        finally:
            subprocess.run([*git, "remove", "--force", str(path)], check=True)


@contextmanager
def kept_or_temporary(keep: Path | None) -> Iterator[Path]:
    """Yield the folder of all runs: one that is kept for inspection, or a temporary one."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="goldens-runs-") as temporary:
            yield Path(temporary)
    else:
        keep.mkdir(parents=True, exist_ok=True)
        if any(keep.iterdir()):
            raise SystemExit(f"goldens: {keep} is not empty: pass another folder to --keep.")
        yield keep.resolve()


def chosen_cases(names: str, *, ray: bool) -> list[Case]:
    """Return the requested cases; an unknown name ends the program.

    Those on Ray take longest, so they start first.
    """
    wanted = [name for name in names.split(",") if name]
    unknown = set(wanted) - {case.name for case in CASES}
    if unknown:
        raise SystemExit(f"goldens: no such case: {', '.join(sorted(unknown))}. See --list.")
    cases = [case for case in CASES if (not wanted or case.name in wanted) and (ray or not case.needs_ray)]
    return sorted(cases, key=lambda case: not case.needs_ray)


def compare_all(cases: list[Case], base: Path, tree: Path, folder: Path, jobs: int) -> bool:
    """Print a line for each finished case; return True if all are equal."""
    began, differing = time.monotonic(), 0
    with ThreadPoolExecutor(jobs) as pool:
        judged = {pool.submit(judge, case, base, tree, folder): case for case in cases}
        for future in as_completed(judged):
            found = future.result()
            differing += found is not None
            print(f"{judged[future].name:34} {found or 'equal'}", flush=True)
    print(f"{len(cases) - differing} of {len(cases)} cases equal, in {time.monotonic() - began:.0f} s")
    return differing == 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare tiny runs of the working tree with those of a base commit.")
    parser.add_argument("--base", default=BASE_COMMIT, help=f"commit to compare with (default: {BASE_COMMIT})")
    parser.add_argument("--tree", type=Path, default=ROOT, help="tree to judge (default: this repository)")
    parser.add_argument("--cases", default="", help="case names, separated by commas (default: all)")
    parser.add_argument("--keep", type=Path, help="keep all run folders here (default: remove them)")
    parser.add_argument("--no-ray", action="store_true", help="leave out the cases that need Ray")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="number of parallel cases (default: 2)")
    parser.add_argument("--job", type=Path, help=argparse.SUPPRESS)  # a worker process
    args = parser.parse_args()
    if args.job:
        work(read_json(args.job))
        return 0
    cases = chosen_cases(args.cases, ray=not args.no_ray)
    if args.list:
        print("\n".join(case.name for case in cases))
        return 0
    with worktree(args.base) as base, kept_or_temporary(args.keep) as folder:
        return 0 if compare_all(cases, base, args.tree.resolve(), folder, args.jobs) else 1


if __name__ == "__main__":
    sys.exit(main())
