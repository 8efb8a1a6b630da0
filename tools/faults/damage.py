"""Damaged run folders: any file in any way, and single bits of the config."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import gdi
from faults.child import Ended, run_child
from faults.record import Trial
from faults.runs import CASES, difference, judge, reference, same_theta
from gdi.cli.main import main

LOGS = ("metrics.jsonl", "episodes.csv")
NAMES = ("gdi-i3", "gdi-h3", "dqn", "ppo", "impala")
WAYS = (
    "removed",
    "empty",
    "cut",
    "a flipped bit",
    "zeros",
    "garbage",
    "a folder",
    "a pipe",
    "a link",
    "more at its end",
)
STOP_AT = 1200


def stopped(name: str, work: Path) -> Path:
    """Return a run that was stopped before its end, which is trained once per campaign."""
    folder = work / "stopped" / name
    if not (work / "stopped" / f"{name}.done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        ended = run_child(lambda: stop_early(name, folder), work / "output", 300)
        if ended.code != 0:
            raise RuntimeError(f"the run of {name} was not stopped as it should be: {ended.err}")
        (work / "stopped" / f"{name}.done").touch()
    return folder


def stop_early(name: str, folder: Path) -> int:
    return int(gdi.train(CASES[name], folder, console=StopAt(STOP_AT)).finished)


class StopAt:
    """A console that stops the run by SIGTERM."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def event(self, event: dict[str, object]) -> None:
        if event["kind"] == "progress" and int(str(event["steps"])) >= self._steps:
            os.kill(os.getpid(), 15)

    def episode(self, steps: int, episode: object) -> None: ...

    def close(self) -> None: ...


def damaged_folders(number: int, rng: random.Random, work: Path) -> Iterator[Trial]:
    """Damage one file of a copy, resume it, and compare."""
    name = NAMES[number % len(NAMES)]
    folder = work / "victim"
    shutil.copytree(stopped(name, work), folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    path, way = rng.choice(files), rng.choice(WAYS)
    before = path.read_bytes()
    victim = work / "outside"
    victim.write_text("precious")
    damage(path, way, rng, victim)
    changed = not path.is_file() or path.is_symlink() or path.read_bytes() != before
    ended = run_child(lambda: main(["train", "--resume", "--run-dir", str(folder)]), work / "output", 120)
    what = f"{name}, {path.relative_to(folder)}: {way}"
    problem = "" if victim.read_text() == "precious" else "a file outside the folder was written"
    problem = problem or wrong(ended, path.relative_to(folder), changed, folder, reference(name, CASES[name], work))
    outcome, detail = judge(ended, problem)
    yield Trial("damaged folders", number, outcome, f"{what}. {detail}")


def damage(path: Path, way: str, rng: random.Random, victim: Path) -> None:
    content = bytearray(path.read_bytes())
    place = rng.randrange(len(content)) if content else 0
    if way == "a flipped bit" and content:
        content[place] ^= 1 << rng.randrange(8)
    elif way == "zeros":
        content[place : place + 64] = bytes(len(content[place : place + 64]))
    new = {"empty": b"", "cut": content[:place], "garbage": rng.randbytes(100), "more at its end": content + b"\xff{\n"}
    path.unlink()
    if way == "a folder":
        path.mkdir()
    elif way == "a pipe":
        os.mkfifo(path)
    elif way == "a link":
        path.symlink_to(victim)
    elif way != "removed":
        path.write_bytes(new.get(way, content))


def wrong(ended: Ended, path: Path, changed: bool, folder: Path, expected: Path) -> str:
    """Return what a resumed run did that it should not have done, or an empty string."""
    if ended.code == 2:
        if not ended.is_one_line:
            # A warning may come first, for each checkpoint that was tried.
            return "" if ended.err.strip().splitlines()[-1].startswith("gdi: error:") else ended.err[-300:]
        return "" if changed else f"an undamaged folder was refused: {ended.err}"
    if ended.code != 0:
        return f"exit code {ended.code}: {ended.err[-300:]}"
    if not same_theta(folder, expected):
        return "θ differs"
    if path.name not in LOGS:
        return difference(folder, expected)
    told = f"{path.name} is damaged" in ended.out or path.name in ended.out
    return "" if told or not difference(folder, expected) else "the damage was not said"


def flipped_bits(number: int, rng: random.Random, work: Path) -> Iterator[Trial]:
    """Flip one bit of the config: the run must not resume, and an evaluation must say it."""
    name = NAMES[number % len(NAMES)]
    folder = work / f"flipped-{name}"
    if not folder.exists():
        shutil.copytree(stopped(name, work), folder)
    good = (stopped(name, work) / "config.json").read_bytes()
    bad, place = bytearray(good), rng.randrange(8 * len(good))
    bad[place // 8] ^= 1 << place % 8
    (folder / "config.json").write_bytes(bad)
    ended = run_child(lambda: resume_and_load(folder), work / "output", 60)
    problem = "" if ended.code == 0 else f"exit code {ended.code}: {ended.out[-200:]}{ended.err[-300:]}"
    (folder / "config.json").write_bytes(good)
    outcome, detail = judge(ended, problem)
    yield Trial("flipped bits of the config", number, outcome, f"{name}, bit {place}. {detail}")


def resume_and_load(folder: Path) -> int:
    """Return 0 if a resume is refused and an agent is refused or comes with a warning."""
    from gdi.errors import UserError

    if main(["train", "--resume", "--run-dir", str(folder)]) != 2:
        print("the changed config was resumed")
        return 3
    warned: list[str] = []
    try:
        gdi.load(folder, warn=warned.append)
    except UserError as error:
        return 0 if "\n" not in str(error) else 4
    print(json.dumps(warned))
    return 0 if any("was changed" in text for text in warned) else 5
