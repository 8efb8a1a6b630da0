"""Training speed on Ray compared with the local runtime on the same cores, in turns.

Equal for all: the game, the preset, the batches, and the number of passes per sample. On Ray 1, 2 or 4 actors share
the environments, and there is one learner. Each of these processes has one thread. The local runtime has all cores in
one process.

More actors mean smaller batches for the acting network, with or without Ray. Each number of actors therefore has a
second local run, with as many environments as one of those actors has. That run makes the same calls for every step.

Evaluations and checkpoints are off. The time is taken between two log lines, so it excludes the start of processes. A
loss is 1 - Ray / local, computed from the medians over the rounds.

    python benchmarks/ray_speed.py [--env MinAtar/Breakout-v0] [--steps 100000] [--rounds 3] [--json]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import replace
from pathlib import Path

from interleaved import SPEED, machine, median, run_interleaved

ACTORS = (1, 2, 4)
SIDES = [f"{runtime}/{actors}" for actors in ACTORS for runtime in ("local", "ray")]


def measure(side: str, env: str, steps: int) -> dict[str, float]:
    """Measure one training run.

    ``side`` is ray with a number of actors, or local with the environments of one of so many actors.
    """
    import gdi
    from gdi.placement import PlacementConfig
    from gdi.runtime.run_log import read_metrics

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
    # From the fourth line on, each window is trained as often as all later ones. The last line is shorter.
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
    found = run_interleaved({side: [__file__, "--side", side, *again] for side in SIDES}, args.rounds)
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
