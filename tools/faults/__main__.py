"""Run the fault campaign: ``python tools/faults --minutes 30``. It continues where it was stopped."""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the package faults

from faults.damage import damaged_folders, flipped_bits
from faults.disks import broken_disks, may_mount
from faults.fuzz import fuzzed_inputs
from faults.kills import local_kills, ray_kills
from faults.record import Record, Trial
from gdi.cores import set_torch_threads
from gdi.seeds import child_seed

Part = Callable[[int, random.Random, Path], Iterator[Trial]]
# Each part, the name of its trials, and how many of them a campaign of any length makes.
PARTS: dict[str, tuple[Part, str, int]] = {
    "local": (local_kills, "kills, local", 150),
    "damage": (damaged_folders, "damaged folders", 200),
    "flips": (flipped_bits, "flipped bits of the config", 3000),
    "fuzz": (fuzzed_inputs, "fuzzed inputs", 2000),
    "disks": (broken_disks, "full, read-only and vanishing disks", 45),
    "ray": (ray_kills, "kills, Ray", 60),
}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python tools/faults", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="stop after this time; start again to continue")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--out", type=Path, default=Path("runs/faults"), help="folder of the record")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the number of trials of each part")
    return parser.parse_args()


def available(parts: list[str], work: Path) -> list[str]:
    """Return the parts that this system allows, and say which are left out."""
    out = list(parts)
    if "ray" in out:
        try:
            import importlib.util

            missing = importlib.util.find_spec("ray") is None
        except ValueError:
            missing = True
        if missing:
            out.remove("ray")
            print("left out: kills on Ray, because Ray is not installed")
    if "disks" in out and not may_mount(work):
        out.remove("disks")
        print("left out: disks, because this system does not let a user mount one")
    return out


def campaign(record: Record, options: argparse.Namespace, work: Path) -> None:
    """Make trials of all parts in turn until all are made, or until the time is over."""
    deadline = time.monotonic() + 60 * options.minutes
    parts = available(options.parts, work)
    attempts = 0  # on a fast machine a run may end before it is killed, and must be tried at other moments
    while parts and time.monotonic() < deadline:
        # The part that is furthest behind its share comes next.
        def share(part: str) -> float:
            _, name, wanted = PARTS[part]
            return record.count(name) / max(1, wanted * options.scale)

        part = min(parts, key=share)
        if share(part) >= 1:
            return
        trials, name, _ = PARTS[part]
        number = record.count(name)
        shutil.rmtree(work / "victim", ignore_errors=True)
        rng = random.Random(child_seed(options.seed, part, number, attempts))
        attempts += 1
        for trial in trials(number, rng, work):
            attempts = 0
            record.add(trial)
            if trial.outcome != "survived":
                print(f"{trial.part} {trial.number}: {trial.outcome}: {trial.detail}", flush=True)


def main() -> int:
    options = parse()
    options.out.mkdir(parents=True, exist_ok=True)
    set_torch_threads(1)
    record = Record(options.out / f"trials-{options.seed}.jsonl")
    with tempfile.TemporaryDirectory(prefix="gdi-faults-") as work:
        campaign(record, options, Path(work))
    record.read()
    print(record.table())
    return 0 if record.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
