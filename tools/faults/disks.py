"""Disks that are full, become read-only, or vanish while a run writes to them."""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import gdi
from faults.child import Ended, run_child
from faults.record import Trial
from faults.runs import CASES, difference, judge, reference
from gdi.cli.main import main

NEW_NAMESPACE, NEW_USER = 0x00020000, 0x10000000
READ_ONLY, REMOUNT, PRIVATE, RECURSIVE = 1, 32, 1 << 18, 16384
NAMES = ("gdi-i3", "dqn", "ppo")
LIBC = ctypes.CDLL(None, use_errno=True)


def mount(target: Path, flags: int, options: str = "", kind: bytes | None = b"tmpfs") -> None:
    if LIBC.mount(b"none", str(target).encode(), kind, flags, options.encode() or None) != 0:
        raise OSError(ctypes.get_errno(), "mount", str(target))


def own_mounts() -> None:
    """Give this process its own mounts, as root or as a user of a new namespace."""
    user, group = os.getuid(), os.getgid()
    if LIBC.unshare(NEW_NAMESPACE) != 0:
        if LIBC.unshare(NEW_NAMESPACE | NEW_USER) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    mount(Path("/"), PRIVATE | RECURSIVE, kind=None)


def may_mount(work: Path) -> bool:
    (work / "disk").mkdir(parents=True, exist_ok=True)

    def work_of_child() -> int:
        own_mounts()
        mount(work / "disk", 0, "size=1m")
        return 0

    return run_child(work_of_child, work / "output").code == 0


class Breaks:
    """A console that breaks the disk at a number of steps."""

    def __init__(self, steps: int, act: Callable[[], None]) -> None:
        self._steps, self._act = steps, act

    def event(self, event: dict[str, object]) -> None:
        if event["kind"] == "progress" and int(str(event["steps"])) >= self._steps:
            act, self._act = self._act, lambda: None
            act()

    def episode(self, steps: int, episode: object) -> None: ...

    def close(self) -> None: ...


def broken_disks(number: int, rng: random.Random, work: Path) -> Iterator[Trial]:
    """Train on a disk that breaks, then continue with what is left of it on a whole disk."""
    way = ("full", "read-only", "vanishing")[number % 3]
    name = NAMES[number // 3 % len(NAMES)]
    config, disk, kept = CASES[name], work / "disk", work / "victim"
    disk.mkdir(parents=True, exist_ok=True)
    size, steps = rng.choice([4, 16, 64, 256, 512, 1024, 2048]), rng.randrange(100, config.steps)

    def train() -> int:
        own_mounts()
        mount(disk, 0, f"size={size if way == 'full' else 65536}k")
        acts: dict[str, Callable[[], None]] = {
            "full": lambda: None,
            "read-only": lambda: os.kill(os.getpid(), signal.SIGTERM),  # open files forbid it during the run
            "vanishing": lambda: shutil.rmtree(disk / "run"),
        }
        from gdi.errors import StorageError, UserError

        code = 0
        try:
            gdi.train(config, disk / "run", console=Breaks(steps, acts[way]))
            if way == "read-only":
                mount(disk, REMOUNT | READ_ONLY)
                gdi.train(config, disk / "run", resume=True)
        except (StorageError, UserError) as error:
            print(error)
            code = 1 if "\n" not in str(error) else 3
        if (disk / "run").exists():
            shutil.copytree(disk / "run", kept)
        return code

    ended = run_child(train, work / "output", 120)
    problem = f"exit code {ended.code}: {ended.err[-300:]}" if ended.code not in (0, 1) else ""
    if way == "vanishing" and ended.code != 0:
        problem = f"the removed folder was not made again: {ended.out[-300:]}"
    if not problem and not ended.has_traceback:
        ended, problem = finish(config, kept, work, reference(name, config, work))
    outcome, detail = judge(ended, problem)
    yield Trial("full, read-only and vanishing disks", number, outcome, f"{name}, {way}, {size}k, {steps}. {detail}")


def finish(config: gdi.config.Config, kept: Path, work: Path, expected: Path) -> tuple[Ended, str]:
    """Continue the run, and return what was lost."""
    if not kept.exists():
        kept.mkdir()
    begin = ["--resume"] if (kept / "config.json").exists() else []
    if begin:
        ended = run_child(lambda: main(["train", *begin, "--run-dir", str(kept)]), work / "output", 120)
    else:
        ended = run_child(lambda: int(not gdi.train(config, kept).finished), work / "output", 120)
    problem = difference(kept, expected) if ended.code == 0 else f"exit code {ended.code}: {ended.err[-300:]}"
    return ended, problem
