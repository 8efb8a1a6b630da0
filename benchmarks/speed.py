"""Training speed on MinAtar Breakout: GDI-I3 beside Stable-Baselines3's PPO, in one run, in turns.

Equal for both: the torso (one 3x3 convolution of 16 filters, 128 dense units), 64 environments stepped by the same
code, 20-step rollouts, 1,280 transitions a gradient step, and 8 gradient passes over every sample. Each side trains in
a process of its own, several times in turns, so that a machine that slows down for a while slows both; the ratio of the
medians is the result. Evaluation and checkpoints are off for both, and each warms up before the clock starts. Ours asks
the C library to keep freed memory (``gdi.runtime.memory``), as every run of it does; nothing is done to theirs.

    python benchmarks/speed.py [--steps 60000] [--rounds 5] [--json]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from rounds import SPEED, in_turns, machine, median

ENV = "MinAtar/Breakout-v0"
ENVS, ROLLOUT, PASSES, HIDDEN = 64, 20, 8, 128
LEAST_STEPS = 25_000  # two lines of a log that has one every 10,000 steps


def time_gdi(steps: int) -> float:
    """Steps per second of a whole training run."""
    from dataclasses import replace

    import gdi
    from gdi.runtime.runlog import read_metrics

    config = gdi.make_config("gdi-i3", ENV, scale="minatar", steps=steps, seed=0)
    data = replace(config.data, sequence_steps=ROLLOUT, batch_size_sequences=ENVS, replay=PASSES)
    config = replace(
        config,
        env=replace(config.env, num_envs=ENVS),
        network=replace(config.network, hidden_units=HIDDEN),
        data=data,
        evaluation=replace(config.evaluation, every_steps=10 * steps, episodes=1),
        run=replace(config.run, checkpoint_every_steps=10 * steps),
    )
    with tempfile.TemporaryDirectory() as folder:
        run_dir = gdi.train(config, Path(folder) / "run").run_dir
        lines = read_metrics(run_dir, "train")
    # From the first line of the log to the last: imports and other first times are not training.
    first, last = lines[0], lines[-1]
    return (last["steps"] - first["steps"]) / (last["clock"]["seconds"] - first["clock"]["seconds"])


def time_ppo(steps: int) -> float:
    """Steps per second of PPO.learn with the same torso, environments, rollout and passes."""
    import gymnasium
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from torch import nn

    from gdi.config import EnvConfig
    from peers import Games, silence

    class Features(BaseFeaturesExtractor):
        def __init__(self, space: gymnasium.Space[Any]) -> None:
            super().__init__(space, HIDDEN)
            self.layers = nn.Sequential(
                nn.Conv2d(space.shape[0], 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 8 * 8, HIDDEN), nn.ReLU()
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers(x)

    games = Games(EnvConfig(ENV, num_envs=ENVS))
    model = PPO(
        "CnnPolicy",
        games,
        n_steps=ROLLOUT,
        batch_size=ENVS * ROLLOUT,
        n_epochs=PASSES,
        policy_kwargs={
            "features_extractor_class": Features,
            "net_arch": [],
            "normalize_images": False,
        },
        device="cpu",
        seed=0,
    )
    silence(model)
    model.learn(ENVS * ROLLOUT * 4)  # first times are not training
    before, begin = games.transitions, time.perf_counter()
    model.learn(steps, reset_num_timesteps=False)
    return (games.transitions - before) / (time.perf_counter() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=60_000, help="training steps of each measurement")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each side, in turns")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--agent", choices=["gdi", "ppo"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.steps < LEAST_STEPS:
        parser.error(f"--steps must be at least {LEAST_STEPS}: speed is taken between two lines of the log")
    if args.agent:
        print(json.dumps({SPEED: {"gdi": time_gdi, "ppo": time_ppo}[args.agent](args.steps)}))
        return
    sides = ("gdi", "ppo")
    found = in_turns({side: [__file__, "--agent", side, "--steps", str(args.steps)] for side in sides}, args.rounds)
    ours, theirs = (median(found, side) for side in sides)
    result = {
        "env": ENV,
        "gdi_steps_per_second": round(ours, 1),
        "ppo_steps_per_second": round(theirs, 1),
        "ratio": round(ours / theirs, 3),
        "rounds": {side: [result[SPEED] for result in results] for side, results in found.items()},
        "passes_per_sample": PASSES,
        "machine": machine(),
    }
    if args.json:
        print(json.dumps(result))
        return
    print(f"{ENV}, {ENVS} environments, {PASSES} gradient passes per sample, {result['machine']}")
    print(f"  gdi-i3                  {ours:>8,.0f} steps/s")
    print(f"  Stable-Baselines3 PPO   {theirs:>8,.0f} steps/s")
    print(f"  ratio                   {ours / theirs:>8.2f} x")


if __name__ == "__main__":
    main()
