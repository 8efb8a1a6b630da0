"""Training speed on MinAtar Breakout: GDI-I3 compared with Stable-Baselines3's PPO, in turns.

Equal for both: the torso (one 3x3 convolution of 16 filters, 128 dense units), 64 environments stepped by the same
code, 20-step rollouts, 1,280 transitions per gradient step, and 8 gradient passes per sample. Each side trains in its
own process, several times in turns, so a machine that slows down for a while slows both. The result is the ratio of
the medians. Evaluation and checkpoints are off for both, and each side warms up before the measurement. Ours makes the
C library keep freed memory (``gdi.runtime.malloc``), as every run does. Theirs is unchanged.

    python benchmarks/speed.py [--steps 60000] [--rounds 5] [--json]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from interleaved import SPEED, machine, median, run_interleaved

ENV = "MinAtar/Breakout-v0"
ENVS, ROLLOUT, PASSES, HIDDEN = 64, 20, 8, 128
LEAST_STEPS = 25_000  # gives two log lines, because there is one every 10,000 steps


def time_gdi(steps: int) -> float:
    """Return the steps per second of a whole training run."""
    from dataclasses import replace

    import gdi
    from gdi.runtime.run_log import read_metrics

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
    # Measure from the first log line to the last, which excludes imports and warm-up.
    first, last = lines[0], lines[-1]
    return (last["steps"] - first["steps"]) / (last["clock"]["seconds"] - first["clock"]["seconds"])


def time_ppo(steps: int) -> float:
    """Return the steps per second of PPO.learn with the same torso, environments, rollout and passes."""
    import gymnasium
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from torch import nn

    from gdi.config import EnvConfig
    from peers import Sb3VecEnv, silence

    class Features(BaseFeaturesExtractor):
        def __init__(self, space: gymnasium.Space[Any]) -> None:
            super().__init__(space, HIDDEN)
            self.layers = nn.Sequential(
                nn.Conv2d(space.shape[0], 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 8 * 8, HIDDEN), nn.ReLU()
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers(x)

    games = Sb3VecEnv(EnvConfig(ENV, num_envs=ENVS))
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
    model.learn(ENVS * ROLLOUT * 4)  # warm up before the measurement
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
        parser.error(f"--steps must be at least {LEAST_STEPS}: speed is measured between two log lines")
    if args.agent:
        print(json.dumps({SPEED: {"gdi": time_gdi, "ppo": time_ppo}[args.agent](args.steps)}))
        return
    sides = ("gdi", "ppo")
    found = run_interleaved(
        {side: [__file__, "--agent", side, "--steps", str(args.steps)] for side in sides}, args.rounds
    )
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
