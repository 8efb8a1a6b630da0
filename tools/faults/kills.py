"""SIGKILL at random moments: of a local run, and of every process of a run on Ray."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import gdi
from faults.child import Child, Ended
from faults.record import Trial
from faults.runs import CASES, difference, gap, judge, reference
from gdi.config import Config, SampledReplayConfig
from gdi.placement import PlacementConfig

RUN_SECONDS, RAY_SECONDS = 300.0, 400.0
PLACEMENT = PlacementConfig(actors=2, stall_seconds=120.0, hang_seconds=60.0)


def local_kills(number: int, rng: random.Random, work: Path) -> Iterator[Trial]:
    """Kill one run until it gets through, and yield a trial per kill."""
    name = rng.choice(list(CASES))
    config = CASES[name]
    expected = reference(name, config, work)
    folder = work / "victim"
    kills = []
    while True:
        child = Child(lambda: train(config, folder), work / "output")
        when = strike(child, folder, rng) if len(kills) < 12 else ""
        if not when:
            ended = child.wait(RUN_SECONDS)
            break
        kills.append(when)
        child.wait(10)
    problem = f"exit code {ended.code}: {ended.err[-300:]}" if ended.code else ""
    if not problem:
        problem = gap(folder, config) if "CartPole" in name else difference(folder, expected)
    outcome, detail = judge(ended, problem)
    for i, when in enumerate(kills):
        yield Trial("kills, local", number + i, outcome, f"{name}, {when}. {detail}")


def train(config: Config, folder: Path) -> int:
    return int(not gdi.train(config, folder, resume=True).finished)


def strike(child: Child, folder: Path, rng: random.Random) -> str:
    """Kill the child at a random moment, or while it writes a checkpoint; return when, or nothing if it ended first."""
    deadline = time.monotonic() + rng.uniform(0.02, 1.5)
    writing = rng.random() < 0.4
    while time.monotonic() < deadline:
        if child.has_ended():
            return ""
        if writing and any(folder.glob("checkpoints/.step-*")):
            break
        time.sleep(0.001)
    during = any(folder.glob("checkpoints/.step-*"))
    child.send(signal.SIGKILL)
    return "during a write" if during else "between writes"


def ray_kills(number: int, rng: random.Random, work: Path) -> Iterator[Trial]:
    """Kill processes of a run on Ray, the driver included, until it gets through."""
    names = [name for name, config in CASES.items() if not isinstance(config.data, SampledReplayConfig)]
    name = rng.choice(names)
    config, folder = CASES[name], work / "victim"
    kills: list[str] = []
    ended = Ended(0, "", "")
    for session in range(5):
        child = Child(lambda: train_on_ray(config, folder), work / "output")
        if session < 3:  # too many losses since one checkpoint end a session, and the next one continues
            kills += strike_processes(child, folder, rng, 3)
        ended = child.wait(RAY_SECONDS)
        if ended.code == 0 or ended.hung or ended.has_traceback:
            break
    problem = (
        gap(folder, config) if ended.code == 0 else f"exit code {ended.code}: {ended.out[-300:]}{ended.err[-300:]}"
    )
    outcome, detail = judge(ended, problem)
    for i, what in enumerate(kills):
        yield Trial("kills, Ray", number + i, outcome, f"{name}, {what}. {detail}")


def train_on_ray(config: Config, folder: Path) -> int:
    from gdi.errors import StorageError
    from gdi.runtime.exceptions import StallError

    try:
        result = gdi.train(config, folder, resume=True, runtime="ray", placement=PLACEMENT)
    except (StallError, StorageError) as error:  # the run says that it gave up; its next session continues
        print(error)
        return 1
    return int(not result.finished)


def strike_processes(child: Child, folder: Path, rng: random.Random, most: int) -> list[str]:
    """Kill up to ``most`` processes below the child, at random moments; the driver is the last."""
    kills: list[str] = []
    while len(kills) < most and not child.has_ended():
        until = time.monotonic() + rng.uniform(0.5, 4.0)
        while time.monotonic() < until and not child.has_ended():
            time.sleep(0.01)
        if not folder.exists():
            continue
        if rng.random() < 0.1:
            child.send(signal.SIGKILL)
            return [*kills, "the driver"]
        processes = ray_processes(child.pid)
        if processes:
            pid, what = rng.choice(processes)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                kills.append(what)
    return kills


def ray_processes(driver: int) -> list[tuple[int, str]]:
    """Return the processes below the driver that do a part of the run, with their names."""
    found = []
    for pid in below(driver):
        with suppress(OSError):
            title = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
            if title.startswith("ray::") and "Worker" in title and "IDLE" not in title:
                found.append((pid, title.removeprefix("ray::")))
    return sorted(found)


def below(pid: int) -> set[int]:
    """Return all descendants of a process."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found, fringe = set(), {pid}
    while fringe:
        fringe = {child for child, parent in parents.items() if parent in fringe} - found
        found |= fringe
    return found
