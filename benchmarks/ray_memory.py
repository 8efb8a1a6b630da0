"""Memory of a run on Ray over time: the object store and every process, as CSV and as a figure.

A run trains for some minutes. Every ten seconds this records the private memory of each process of the run. It also
records the growth of the machine's shared memory since the start, which is the used part of the object store. All
values come from /proc, so this works only on Linux.

    python benchmarks/ray_memory.py OUT [--minutes 15] [--actors 2] [--env MinAtar/Breakout-v0]
"""

from __future__ import annotations

import argparse
import csv
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

EVERY_SECONDS = 10.0
OBJECT_STORE = "object store"
MIB = 1 << 20


def shared_bytes() -> int:
    found = re.search(r"^Shmem: +(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    assert found
    return int(found[1]) << 10


def descendants(root: int) -> list[int]:
    children = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        children[parent].append(int(path.parent.name))
    found, front = [], [root]
    while front:
        pid = front.pop()
        found.append(pid)
        front += children[pid]
    return found


def private_bytes(pid: int) -> tuple[str, int] | None:
    """Return the process's name and its unshared memory, or None if it has ended."""
    try:
        name = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0].split("/")[-1].split(" ")[0]
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return None
    kib = sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty")))
    return name.removeprefix("ray::").split(".")[0], kib << 10


def watch(training: subprocess.Popen[bytes], seconds: float, shared_before: int) -> list[dict[str, float]]:
    """Record one row per sample: seconds, and MiB by name, summed over processes of one kind."""
    begin, rows = time.monotonic(), []
    while (now := time.monotonic() - begin) < seconds:
        if training.poll() is not None:
            raise SystemExit(f"the training ended with exit code {training.returncode} after {now:.0f} s")
        row: dict[str, float] = defaultdict(float)
        row["seconds"] = round(now, 1)
        for pid in descendants(training.pid):
            if (found := private_bytes(pid)) is not None:
                row[found[0]] += round(found[1] / MIB, 1)
        row[OBJECT_STORE] = round((shared_bytes() - shared_before) / MIB, 1)
        rows.append(row)
        time.sleep(EVERY_SECONDS)
    return rows


def kept(rows: list[dict[str, float]]) -> list[str]:
    """Return the names that deserve a column: the object store, and those above 50 MiB at some time."""
    names = sorted({name for row in rows for name in row} - {"seconds", OBJECT_STORE})
    return [OBJECT_STORE, *(name for name in names if max(row.get(name, 0.0) for row in rows) > 50)]


def draw(rows: list[dict[str, float]], names: list[str], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for name in names:
        axes.plot([row["seconds"] / 60 for row in rows], [row.get(name, 0.0) for row in rows], label=name)
    axes.set(xlabel="minutes", ylabel="MiB", ylim=(0, None), title="Memory of a run on Ray")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="OUT.csv and OUT.png are written")
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--actors", type=int, default=2)
    parser.add_argument("--env", default="MinAtar/Breakout-v0")
    args = parser.parse_args()
    shared_before = shared_bytes()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gdi.cli.main", "train", "--env", args.env, "--steps", "1e9"]
        command += ["--runtime", "ray", "--placement.actors", str(args.actors), "--run-dir", f"{folder}/run"]
        training = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            while not (Path(folder) / "run" / "metrics.jsonl").exists():
                assert training.poll() is None, "the training did not start"
                time.sleep(1.0)
            rows = watch(training, args.minutes * 60, shared_before)
        finally:
            training.send_signal(signal.SIGTERM)
            training.wait(timeout=120)
    names = kept(rows)
    with args.out.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["seconds", *(f"{name} MiB" for name in names)])
        writer.writerows([row["seconds"], *(row.get(name, 0.0) for name in names)] for row in rows)
    draw(rows, names, args.out.with_suffix(".png"))
    third = len(rows) // 3
    print("MiB, mean of the second and of the last third:")
    for name in names:
        middle, last = rows[third : 2 * third], rows[2 * third :]
        means = [sum(row.get(name, 0.0) for row in part) / len(part) for part in (middle, last)]
        print(f"  {name:<20} {means[0]:8.1f} {means[1]:8.1f}   {means[1] / max(means[0], 0.1) - 1:+.1%}")


if __name__ == "__main__":
    main()
