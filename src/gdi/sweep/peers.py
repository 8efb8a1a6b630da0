"""Stable-Baselines3's PPO, DQN, QR-DQN and RecurrentPPO as jobs of a sweep, on our environments and evaluation.

``peer_settings`` has their settings. A peer cannot be resumed, so its files are written at its end.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv

from gdi.config import Config
from gdi.envs import make_env
from gdi.errors import DivergenceError, UserError
from gdi.runtime.memory_plan import PROGRAM_BYTES
from gdi.runtime.run_log import METRICS
from gdi.seeds import child_seed
from gdi.sweep.files import write_whole
from gdi.sweep.jobs import Job
from gdi.sweep.peer_env import SMALLEST_SIDE, SingleEnv, Torso
from gdi.sweep.peer_play import Player, play
from gdi.sweep.peer_settings import OWN, POLICY_GRADIENT, peer_config, peer_settings, shared_config
from gdi.sweep.probe import Trial
from gdi.sweep.status import CONFIG, Line
from gdi.types import Array

Report = Callable[[int], None]
# Parameters are checked for NaN once per so many steps.
CHECK_EVERY_STEPS = 256


def algorithm_of(preset: str) -> Any:
    """Return the class of a peer."""
    import sb3_contrib
    import stable_baselines3

    classes = {
        "sb3-ppo": stable_baselines3.PPO,
        "sb3-dqn": stable_baselines3.DQN,
        "sb3-qrdqn": sb3_contrib.QRDQN,
        "sb3-recurrent-ppo": sb3_contrib.RecurrentPPO,
    }
    return classes[preset]


def make_model(job: Job, env: DummyVecEnv) -> tuple[BaseAlgorithm, Player]:
    """Return a peer before training, and how it plays in evaluations."""
    settings = peer_settings(job.preset, job.env, job.settings)
    own = {name: settings.pop(name, None) for name in ("evaluation_epsilon", "adam_epsilon", "num_envs")}
    if (steps := settings.pop("exploration_steps", None)) is not None:
        settings["exploration_fraction"] = min(1.0, steps / job.steps)
    if (end := settings.pop("learning_rate_end", None)) is not None:
        settings["learning_rate"] = linear(settings.get("learning_rate", 3e-4), end)
    network = network_of(settings, env.observation_space.shape or ())
    if own["adam_epsilon"] is not None:
        network["optimizer_kwargs"] = {"eps": own["adam_epsilon"], "fused": True}
    recurrent = "Lstm" if job.preset == "sb3-recurrent-ppo" else ""
    kind = "Cnn" if len(env.observation_space.shape or ()) == 3 else "Mlp"
    policy = f"{kind}{recurrent}Policy"
    model = algorithm_of(job.preset)(policy, env, policy_kwargs=network, device="cpu", seed=seed_of(job), **settings)
    silence(model)
    return model, Player(model, own["evaluation_epsilon"] or 0.0)


def seed_of(job: Job) -> int:
    """Return the seed of a peer. It is the same number as in our benchmark, where peers have no prefix."""
    seeds = {
        "sb3-ppo": child_seed(job.seed, "ppo"),
        "sb3-dqn": child_seed(job.seed, "dqn"),
        "sb3-qrdqn": child_seed(job.seed, "qrdqn"),
        "sb3-recurrent-ppo": child_seed(job.seed, "recurrent-ppo"),
    }
    return seeds[job.preset]


def network_of(settings: dict[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """Take the settings of the network out of those of the algorithm. Larger images have the library's network."""
    sizes = {name: settings.pop(name) for name in ("filters", "hidden_units") if name in settings}
    network: dict[str, Any] = {}
    if (units := settings.pop("lstm_units", None)) is not None:
        network["lstm_hidden_size"] = units
    if len(shape) == 3 and min(shape[1:]) < SMALLEST_SIDE:
        sizes = {"filters": 16, "hidden_units": 128, **sizes}
        network |= {"features_extractor_class": Torso, "features_extractor_kwargs": sizes, "net_arch": []}
        network["normalize_images"] = False
    elif "hidden_units" in sizes:
        network["net_arch"] = [sizes["hidden_units"]] * 2
    return network


def linear(begin: float, end: float) -> Callable[[float], float]:
    """Return a learning rate that goes linearly from ``begin`` to ``end``."""

    def rate(left: float) -> float:
        # The last rollout goes slightly past the end, where a plain line would go on.
        return end + (begin - end) * max(left, 0.0)

    return rate


def silence(model: BaseAlgorithm) -> None:
    """Give the model an empty logger.

    Otherwise Stable-Baselines3 leaves a new folder in the temporary directory at every ``learn``.
    """
    model.set_logger(Logger(None, []))


def check_finite(model: BaseAlgorithm) -> None:
    """Raise DivergenceError if a parameter is NaN or infinite."""
    if not all(bool(torch.isfinite(value).all()) for value in model.policy.parameters()):
        raise DivergenceError(f"the parameters are NaN or infinite after {model.num_timesteps} steps.")


class Watch(BaseCallback):
    """A callback that evaluates every ``every`` steps, reports progress, and ends a run that diverged."""

    def __init__(self, evaluate: Callable[[int], None], every: int, steps: int, report: Report) -> None:
        super().__init__()
        self._evaluate, self._every, self._steps, self._report = evaluate, every, steps, report
        self._last = self._checked = 0

    def _on_rollout_start(self) -> None:
        if self.num_timesteps - self._checked >= CHECK_EVERY_STEPS:
            self._checked = self.num_timesteps
            check_finite(self.model)

    def _on_step(self) -> bool:
        done = self.num_timesteps
        self._report(done)
        # the end of training has its own evaluation
        if done < self._steps and done // self._every > self._last // self._every:
            self._last = done
            self._evaluate(done)
        return True


def make_vector_env(job: Job, config: Config) -> DummyVecEnv:
    count = peer_settings(job.preset, job.env, job.settings)["num_envs"]
    return DummyVecEnv([lambda: SingleEnv(config.env) for _ in range(count)])


def train_peer(job: Job, report: Report, lines: list[Line]) -> None:
    """Train to the end, and add every evaluation to ``lines``, in the form of a run's log.

    The time starts with training and includes evaluations, as gdi's does. A step is a transition. Stable-Baselines3
    gives environment i the seed s + i. A hash of our seed gives s, so that neighboring seeds share no environment.
    """
    torch.set_num_threads(1)
    config = shared_config(job.env, job.seed, job.steps, job.settings)
    with closing(make_env(config.env, 1)) as one:
        per_step = one.spec.frames_per_step
    with closing(make_vector_env(job, config)) as env:
        _train(job, config, env, per_step, report, lines)


def _train(job: Job, config: Config, env: DummyVecEnv, per_step: int, report: Report, lines: list[Line]) -> None:
    """Train in these environments, whose steps are so many frames each."""
    model, player = make_model(job, env)
    began = time.perf_counter()

    def evaluate(done: int) -> None:
        returns = play(config.env, player, config.evaluation.episodes, child_seed(job.seed, "evaluation", done))
        lines.append(line_of(job, model, (done, done * per_step), returns, time.perf_counter() - began))

    try:
        model.learn(job.steps, callback=Watch(evaluate, config.evaluation.every_steps, job.steps, report))
    except ValueError:  # as the library says that a policy is NaN
        check_finite(model)
        raise
    check_finite(model)
    evaluate(model.num_timesteps)


def line_of(job: Job, model: BaseAlgorithm, counts: tuple[int, int], returns: Array, seconds: float) -> Line:
    """Return an evaluation in the form of a run's log; ``counts`` are steps and frames."""
    return {
        **{"kind": "evaluation", "steps": counts[0], "frames": counts[1]},
        **{"updates": int(getattr(model, "_n_updates", 0)), "env": job.env, "episodes": len(returns)},
        **{"mean": float(returns.mean()), "median": float(np.median(returns)), "std": float(returns.std())},
        **{"min": float(returns.min()), "max": float(returns.max()), "returns": list(map(float, returns))},
        "clock": {"seconds": seconds},
    }


def run_peer(job: Job, folder: Path, report: Report) -> None:
    """Train a peer, and write its run folder: the settings, and a log that has the evaluations alone.

    The log comes last, because a folder that has it is finished.
    """
    settings = peer_config(job.preset, job.env, job.seed, job.steps, job.settings)
    lines: list[Line] = []
    try:
        train_peer(job, report, lines)
    finally:
        # A run that diverged keeps its evaluations. A signal ends the process at once, and leaves nothing.
        write_whole(folder / CONFIG, json.dumps(settings, indent=2) + "\n")
        write_whole(folder / METRICS, "".join(json.dumps(line) + "\n" for line in lines))


class Deadline(BaseCallback):
    """A callback that ends training after some seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._end = time.perf_counter() + seconds

    def _on_step(self) -> bool:
        return time.perf_counter() < self._end


def try_peer(job: Job, seconds: float) -> Trial:
    """Build a peer, and train it for some seconds. Nothing is written. DQN learns from the beginning, as later."""
    torch.set_num_threads(1)
    early = {**job.settings, f"{OWN}learning_starts": 100} if job.preset not in POLICY_GRADIENT else job.settings
    trial = replace(job, settings=early)
    env = make_vector_env(trial, shared_config(job.env, job.seed, job.steps, job.settings))
    try:
        model, _ = make_model(trial, env)
        began = time.perf_counter()
        if seconds:
            model.learn(job.steps, callback=Deadline(seconds))
        speed = model.num_timesteps / (time.perf_counter() - began)
        return Trial(speed, memory_of(model), 0)
    except (ValueError, AssertionError) as error:  # how the library refuses a setting
        raise UserError(f"Stable-Baselines3 refuses these settings: {' '.join(str(error).split())}") from None
    finally:
        env.close()


def memory_of(model: BaseAlgorithm) -> int:
    """Return about the bytes that a peer needs: its memory of transitions, and twice the program for both libraries."""
    buffer: Any = getattr(model, "replay_buffer", None) or getattr(model, "rollout_buffer", None)
    arrays = [value for value in vars(buffer).values() if isinstance(value, np.ndarray)]
    return sum(array.nbytes for array in arrays) + 2 * PROGRAM_BYTES
