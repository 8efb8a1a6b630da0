"""Training speed of our DQN and PPO on MinAtar Breakout, beside Stable-Baselines3's and plain loops, in turns.

Equal for all: the network (one 3x3 convolution of 16 filters, 128 dense units), the code that steps the environments,
the batch, and the number of gradient passes per transition. Stable-Baselines3's DQN runs with one environment, as it
usually does, and with as many as ours. ``loops.py`` has the plain loops. Each side trains in its own process on one
thread, several times in turns, so a machine that slows down for a while slows all. The results are the medians of the
ratios within a round. Evaluation and checkpoints are off, and each side warms up before the measurement.

    python benchmarks/systems_speed.py [--system dqn|ppo] [--steps 20000] [--rounds 5] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interleaved import SPEED, Measurements, machine, run_interleaved
from loops import Clock, DQNLoop, PPOLoop, dqn_loop, ppo_loop

ENV = "MinAtar/Breakout-v0"
DQN = DQNLoop(
    envs=8, hidden=128, batch=32, capacity=100_000, learn_start=1000, steps_per_update=4, target_period_updates=250
)
PPO = PPOLoop(envs=64, hidden=128, rollout=32, minibatch=256, epochs=4)


def one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def time_ours(preset: str, steps: int) -> float:
    """Return the steps per second of a training run, after the learn start."""
    from dataclasses import replace

    import gdi
    from gdi.runtime.run_log import read_metrics

    warm_up = 2 * DQN.learn_start if preset == "dqn" else 2 * PPO.envs * PPO.rollout
    config = gdi.make_config(preset, ENV, scale="minatar", steps=steps + 2 * warm_up, seed=0)
    check_equal(preset, config)
    config = replace(
        config,
        data=config.data.early_start(),
        evaluation=replace(config.evaluation, every_steps=10**9, episodes=1),
        run=replace(config.run, log_every_steps=1000, checkpoint_every_steps=10**9, threads=1),
    )
    with tempfile.TemporaryDirectory() as folder:
        lines = read_metrics(gdi.train(config, Path(folder) / "run").run_dir, "train")
    measured = [line for line in lines if line["steps"] >= warm_up]
    first, last = measured[0], measured[-1]
    return float(last["steps"] - first["steps"]) / float(last["clock"]["seconds"] - first["clock"]["seconds"])


def check_equal(preset: str, config: Any) -> None:
    """Raise AssertionError if the preset no longer has the numbers of its peers."""
    data, envs, hidden = config.data, config.env.num_envs, config.network.hidden_units
    if preset == "dqn":
        period = data.period_transitions // data.updates, config.learner.target_period_updates
        ours = (envs, hidden, data.batch_size_sequences, data.capacity_transitions, *period)
        theirs = (DQN.envs, DQN.hidden, DQN.batch, DQN.capacity, DQN.steps_per_update, DQN.target_period_updates)
    else:
        ours = (envs, hidden, data.sequence_steps, data.batch_size_sequences, data.replay)
        theirs = (PPO.envs, PPO.hidden, PPO.rollout, PPO.minibatch, PPO.epochs)
    assert ours == theirs, f"the preset {preset} has {ours}, and its peers have {theirs}: change DQN or PPO here"


def games(envs: int) -> Any:
    from gdi.config import EnvConfig
    from peers import Sb3VecEnv

    return Sb3VecEnv(EnvConfig(ENV, num_envs=envs))


def sb3_policy(hidden: int) -> dict[str, Any]:
    """Return the policy arguments that give Stable-Baselines3 our network."""
    import torch
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    from loops import encoder

    class Features(BaseFeaturesExtractor):
        def __init__(self, space: Any) -> None:
            super().__init__(space, hidden)
            self.layers = encoder(space.shape[0], hidden)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers(x)

    return {"features_extractor_class": Features, "net_arch": [], "normalize_images": False}


def time_sb3(make: Callable[[Any], Any], envs: int, warm_up: int, steps: int) -> float:
    """Return the steps per second of ``learn`` after a warm-up."""
    from stable_baselines3.common.callbacks import BaseCallback

    from peers import silence

    world = games(envs)
    clock = Clock(warm_up, steps)

    class Until(BaseCallback):
        def _on_step(self) -> bool:
            return clock.goes_on(world.transitions)

    model = make(world)
    silence(model)
    model.learn(10**9, callback=Until())
    return clock.rate


def sb3_dqn(envs: int, steps: int) -> float:
    from stable_baselines3 import DQN as Model

    def make(world: Any) -> Any:
        per_call = max(1, DQN.steps_per_update // envs)
        return Model(
            "CnnPolicy",
            world,
            buffer_size=DQN.capacity,
            learning_starts=DQN.learn_start,
            batch_size=DQN.batch,
            train_freq=per_call,
            gradient_steps=per_call * envs // DQN.steps_per_update,
            target_update_interval=DQN.target_period_updates * DQN.steps_per_update,
            exploration_fraction=1e-6,
            exploration_final_eps=0.1,
            policy_kwargs=sb3_policy(DQN.hidden),
            device="cpu",
            seed=0,
        )

    return time_sb3(make, envs, 2 * DQN.learn_start, steps)


def sb3_ppo(steps: int) -> float:
    from stable_baselines3 import PPO as Model

    def make(world: Any) -> Any:
        return Model(
            "CnnPolicy",
            world,
            n_steps=PPO.rollout,
            batch_size=PPO.minibatch,
            n_epochs=PPO.epochs,
            ent_coef=0.01,
            policy_kwargs=sb3_policy(PPO.hidden),
            device="cpu",
            seed=0,
        )

    return time_sb3(make, PPO.envs, 2 * PPO.envs * PPO.rollout, steps)


SIDES: dict[str, dict[str, Callable[[int], float]]] = {
    "dqn": {
        "ours": lambda steps: time_ours("dqn", steps),
        "sb3, 1 environment": lambda steps: sb3_dqn(1, steps),
        "sb3, 8 environments": lambda steps: sb3_dqn(DQN.envs, steps),
        "plain loop": lambda steps: dqn_loop(games(DQN.envs), DQN, steps),
    },
    "ppo": {
        "ours": lambda steps: time_ours("ppo", steps),
        "sb3": sb3_ppo,
        "plain loop": lambda steps: ppo_loop(games(PPO.envs), PPO, steps),
    },
}


def compare(system: str, steps: int, rounds: int) -> dict[str, Any]:
    """Measure all sides of a system in turns."""
    found: Measurements = run_interleaved(
        {side: [__file__, "--system", system, "--side", side, "--steps", str(steps)] for side in SIDES[system]},
        rounds,
    )
    speeds = {side: [result[SPEED] for result in results] for side, results in found.items()}
    ratios = {
        side: round(statistics.median(a / b for a, b in zip(speeds["ours"], theirs, strict=True)), 2)
        for side, theirs in speeds.items()
    }
    return {"env": ENV, "system": system, "speeds": speeds, "ratio": ratios, "machine": machine()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", choices=sorted(SIDES), help="one of the systems (default: all)")
    parser.add_argument("--steps", type=int, default=20_000, help="training steps of each measurement")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each side, in turns")
    parser.add_argument("--json", action="store_true", help="print one JSON object per system")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.steps < 5000:
        parser.error("--steps must be at least 5000: speed is measured between two log lines")
    if args.side:
        one_thread()
        print(json.dumps({SPEED: SIDES[args.system][args.side](args.steps)}))
        return
    for system in [args.system] if args.system else sorted(SIDES):
        result = compare(system, args.steps, args.rounds)
        if args.json:
            print(json.dumps(result))
            continue
        print(f"{system} on {ENV}, {result['machine']}, {args.rounds} rounds")
        for side, speeds in result["speeds"].items():
            print(
                f"  {side:<20} {statistics.median(speeds):>8,.0f} steps/s   ours / theirs {result['ratio'][side]:.2f}"
            )


if __name__ == "__main__":
    main()
