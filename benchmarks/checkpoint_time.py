"""Training speed and the time of a checkpoint, of an earlier version and of this one, in turns.

Both train GDI-I3 on MinAtar Breakout on one thread. Speed is of a run with its usual checkpoints and evaluations. A
checkpoint is measured as a whole, with logs and hashes, when the replay is full. Each side runs in its own process,
several times in turns. The results are medians over the rounds, and the ratios are medians of those within a round.
CPU time changes little on a busy machine, and wall-clock time changes much.

    git worktree add ../before a6c9eb9
    python benchmarks/checkpoint_time.py --before ../before/src [--steps 220000] [--checkpoints 30] [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from interleaved import SPEED, machine, run_interleaved

ENV = "MinAtar/Breakout-v0"
HERE = Path(__file__).resolve().parents[1] / "src"
CPU_SPEED, WALL, CPU = "steps_per_cpu_second", "checkpoint_milliseconds", "checkpoint_cpu_milliseconds"
UNITS = {SPEED: "steps/s", CPU_SPEED: "steps per CPU second", WALL: "ms a checkpoint", CPU: "CPU ms a checkpoint"}
LEAST_STEPS = 25_000  # gives two log lines, because there is one every 10,000 steps
WINDOW = 64 * 20  # steps of one window
FULL = 2 * 16 * WINDOW  # the replay spreads the uses of a window over 16 windows


def measure(steps: int, checkpoints: int) -> dict[str, float]:
    """Measure the version of gdi that is first in ``sys.path``, which is only imported here."""
    import gdi

    config = gdi.make_config("gdi-i3", ENV, scale="minatar", steps=steps, seed=0)
    config = replace(config, run=replace(config.run, threads=1))
    often = replace(
        config,
        steps=FULL + checkpoints * WINDOW,
        evaluation=replace(config.evaluation, every_steps=10**9, episodes=1),
        run=replace(config.run, checkpoint_every_steps=WINDOW),
    )
    return {**speed(config), **checkpoint_time(often)}


def speed(config: Any) -> dict[str, float]:
    """Return the speed of a run from its first log line to its last, which excludes imports and warm-up."""
    import gdi

    lines: list[tuple[int, float, float]] = []

    class Watcher:
        def event(self, event: dict[str, Any]) -> None:
            if event["kind"] == "train":
                lines.append((event["steps"], time.perf_counter(), time.process_time()))

        def episode(self, steps: int, episode: Any) -> None: ...

        def close(self) -> None: ...

    with tempfile.TemporaryDirectory() as folder:
        gdi.train(config, Path(folder) / "run", console=Watcher())
    steps, seconds, cpu_seconds = (last - first for first, last in zip(lines[0], lines[-1], strict=True))
    return {SPEED: steps / seconds, CPU_SPEED: steps / cpu_seconds}


def checkpoint_time(config: Any) -> dict[str, float]:
    """Return the medians of the wall-clock and CPU times of the checkpoints with a full replay."""
    import gdi
    from gdi.runtime.run import Run

    save, times = Run._save, []

    def timed(run: Any, **options: Any) -> Any:
        begin = time.perf_counter(), time.process_time()
        path = save(run, **options)
        if run.steps > FULL:
            times.append((time.perf_counter() - begin[0], time.process_time() - begin[1]))
        return path

    Run._save = timed  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as folder:
        gdi.train(config, Path(folder) / "run")
    Run._save = save  # type: ignore[method-assign]
    return {name: 1000 * statistics.median(one[i] for one in times) for i, name in enumerate((WALL, CPU))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="the folder src of the earlier version")
    parser.add_argument("--steps", type=int, default=220_000, help="training steps of each measurement of speed")
    parser.add_argument("--checkpoints", type=int, default=30, help="checkpoints of each measurement of their time")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each side, in turns")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        sys.path.insert(0, str(args.measure))
        print(json.dumps(measure(args.steps, args.checkpoints)))
        return
    if args.steps < LEAST_STEPS:
        parser.error(f"--steps must be at least {LEAST_STEPS}: speed is measured between two log lines")
    if args.before is None or not (args.before / "gdi").is_dir():
        parser.error("--before must be the folder src of an earlier version")
    options = ["--steps", str(args.steps), "--checkpoints", str(args.checkpoints)]
    sides = {"before": args.before.resolve(), "now": HERE}
    found = run_interleaved(
        {name: [__file__, "--measure", str(src), *options] for name, src in sides.items()}, args.rounds
    )
    result: dict[str, Any] = {"env": ENV, "machine": machine(), "rounds": found}
    for name in UNITS:
        before, now = ([one[name] for one in found[side]] for side in sides)
        ratios = [new / old for old, new in zip(before, now, strict=True)]
        result[name] = [statistics.median(values) for values in (before, now, ratios)]
    if args.json:
        print(json.dumps(result))
        return
    print(f"{ENV}, one thread, {args.rounds} rounds, {result['machine']}")
    print(f"  {'':24}{'before':>10}{'now':>10}{'ratio':>8}")
    for name, unit in UNITS.items():
        before, now, ratio = result[name]
        print(f"  {unit:24}{before:>10,.1f}{now:>10,.1f}{ratio:>8.3f}")


if __name__ == "__main__":
    main()
