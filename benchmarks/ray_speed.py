"""Training speed on Ray beside the local runtime, at equal work on the same cores, in turns.

Equal for all: the game, the preset, the total number of environments, the batches, and how often each sample is
trained. On Ray the environments are shared out over 1, 2 and 4 actors beside one learner, each process with one
thread; the local runtime has all cores in one process. Evaluations and checkpoints are off; the
clock runs from one line of the log to another, so that starting processes is not counted. The loss is 1 - Ray / local,
of the medians over the rounds.

    python benchmarks/ray_speed.py [--env MinAtar/Breakout-v0] [--steps 100000] [--rounds 3] [--json]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path

from rounds import SPEED, in_turns, machine, median

SIDES = ("local", "1", "2", "4")


def measure(side: str, env: str, steps: int) -> dict[str, float]:
    """One training; ``side`` is local or the number of actors."""
    import gdi
    from gdi.placement import PlacementConfig
    from gdi.report.runlog import read_metrics

    config = gdi.make_config("gdi-i3", env, steps=steps, seed=0)
    config = replace(
        config,
        evaluation=replace(config.evaluation, every_steps=10 * steps, episodes=1),
        run=replace(config.run, checkpoint_every_steps=10 * steps, log_every_steps=steps // 20, device="cpu"),
    )
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        if side == "local":
            gdi.train(config, run_dir)
        else:
            placement = PlacementConfig(actors=int(side))
            gdi.train(config, run_dir, runtime="ray", placement=placement)
        lines = read_metrics(run_dir, "train")
    # From the fourth line on every window is trained as often as later ones; the last is shorter.
    first, last = lines[3], lines[-2]
    seconds = last["clock"]["seconds"] - first["clock"]["seconds"]
    lag = [line["actor/parameter_lag_updates"] for line in lines[4:-1]]
    queued = [line.get("ray/queue_windows", 0.0) for line in lines[4:-1]]
    return {
        SPEED: (last["steps"] - first["steps"]) / seconds,
        "lag_updates": sum(lag) / len(lag),
        "queue_windows": sum(queued) / len(queued),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="MinAtar/Breakout-v0")
    parser.add_argument("--steps", type=int, default=100_000, help="training steps of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each side, in turns")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        print(json.dumps(measure(args.side, args.env, args.steps)))
        return
    again = ["--env", args.env, "--steps", str(args.steps)]
    found = in_turns({side: [__file__, "--side", side, *again] for side in SIDES}, args.rounds)
    local = median(found, "local")
    if args.json:
        print(json.dumps({"env": args.env, "machine": machine(), "rounds": found}))
        return
    print(f"{args.env}, {args.steps:,} steps, {machine()}")
    print("              steps/s   lost to Ray   lag in updates   windows waiting")
    for side in SIDES:
        speed, lag, queued = (median(found, side, key) for key in (SPEED, "lag_updates", "queue_windows"))
        name = side if side == "local" else f"{side} actors"
        loss = "" if side == "local" else f"{1 - speed / local:.0%}"
        print(f"  {name:<10} {speed:>9,.0f}   {loss:>11}   {lag:>14.1f}   {queued:>15.1f}")


if __name__ == "__main__":
    main()
