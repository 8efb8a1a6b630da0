"""Training speed on Ray beside the local runtime on the same cores, in turns.

Equal for all: the game, the preset, the batches, and how often each sample is trained. On Ray the environments are
shared out over 1, 2 and 4 actors beside one learner, each process with one thread; the local runtime has all cores in
one process. More actors mean smaller batches for the network that acts, with or without Ray. So each number of actors
has a local run of its own besides the whole one: with as many environments as one of those actors has, which makes the
same calls for every step. Evaluations and checkpoints are off; the clock runs from one line of the log to another, so
that starting processes is not counted. A loss is 1 - Ray / local, of the medians over the rounds.

    python benchmarks/ray_speed.py [--env MinAtar/Breakout-v0] [--steps 100000] [--rounds 3] [--json]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path

from rounds import SPEED, in_turns, machine, median

ACTORS = (1, 2, 4)
SIDES = [f"{runtime}/{actors}" for actors in ACTORS for runtime in ("local", "ray")]


def measure(side: str, env: str, steps: int) -> dict[str, float]:
    """One training. ``side`` is ray and the number of actors, or local with the environments of one of so many."""
    import gdi
    from gdi.placement import PlacementConfig
    from gdi.runtime.runlog import read_metrics

    runtime, actors = side.split("/")
    config = gdi.make_config("gdi-i3", env, steps=steps, seed=0)
    config = replace(
        config,
        evaluation=replace(config.evaluation, every_steps=10 * steps, episodes=1),
        run=replace(config.run, checkpoint_every_steps=10 * steps, log_every_steps=steps // 20, device="cpu"),
    )
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        if runtime == "local":
            part = replace(config, env=replace(config.env, num_envs=config.env.num_envs // int(actors)))
            gdi.train(part, run_dir)
        else:
            gdi.train(config, run_dir, runtime="ray", placement=PlacementConfig(actors=int(actors)))
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
    if args.json:
        print(json.dumps({"env": args.env, "machine": machine(), "rounds": found}))
        return
    print(f"{args.env}, {args.steps:,} steps, {machine()}")
    print("  actors   Ray steps/s   local, same calls    lost   local, whole    lost   lag, updates   windows waiting")
    whole = median(found, "local/1")
    for actors in ACTORS:
        side = f"ray/{actors}"
        speed, lag, queued = (median(found, side, key) for key in (SPEED, "lag_updates", "queue_windows"))
        same = median(found, f"local/{actors}")
        print(
            f"  {actors:>6}   {speed:>11,.0f}   {same:>17,.0f}   {1 - speed / same:>5.0%}   {whole:>12,.0f}   "
            f"{1 - speed / whole:>5.0%}   {lag:>12.1f}   {queued:>15.1f}"
        )


if __name__ == "__main__":
    main()
