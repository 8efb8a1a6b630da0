"""Small configs, windows and consoles that many tests share."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gdi.acting.actor import Actor
from gdi.acting.parameters import ParameterServer
from gdi.acting.player import Player
from gdi.algorithms import Transitions, make_algorithm
from gdi.cli.main import main
from gdi.clock import Clock
from gdi.config import Config
from gdi.envs.base import VectorEnv
from gdi.index_space import make_index_space
from gdi.networks import AgentNetwork, Seen
from gdi.networks import make_network as make_network_of
from gdi.presets import make_config
from gdi.runtime.checkpoint import CheckpointStore
from gdi.types import EpisodeEnd, Window, window_from


def tiny_config(
    env: str = "MinAtar/Breakout-v0", preset: str = "gdi-i3", *, steps: int = 1200, **settings: Any
) -> Config:
    """Return the config of a run of half a second: few environments, short windows, a small network."""
    config = make_config(preset, env, steps=steps, seed=7)
    sizes = {
        "batch_size_sequences": 8,
        "sequence_steps": 5,
        "replay": 2,
        "replay_span_windows": 4,
        "warmup_updates": 10,
    }
    config = replace(
        config,
        env=replace(config.env, num_envs=8),
        network=replace(config.network, hidden_units=16),
        evaluation=replace(config.evaluation, every_steps=1000, episodes=4),
        run=replace(config.run, log_every_steps=250, checkpoint_every_steps=500, threads=1, device="cpu"),
    )
    return change(config, **{**sizes, **settings})


def change(config: Config, **settings: Any) -> Config:
    """Return the config with these fields changed, in whichever section has a field of that name.

    The sections are data, optimizer, learner, run and network.
    """
    for name, value in settings.items():
        sections = ("data", "optimizer", "learner", "run", "network")
        section = next(section for section in sections if hasattr(getattr(config, section), name))
        config = replace(config, **{section: replace(getattr(config, section), **{name: value})})
    return config


def make_network(config: Config, observation_shape: tuple[int, ...], num_actions: int, seed: int) -> AgentNetwork:
    return make_network_of(config, make_algorithm(config), observation_shape, num_actions, seed)


def with_lstm(config: Config, units: int = 8) -> Config:
    return replace(config, network=replace(config.network, lstm_units=units))


def make_actor(env: VectorEnv, config: Config, seed: int = 0) -> tuple[Actor, AgentNetwork]:
    """Return an actor whose θ never changes, and a network with the same θ."""
    shape, actions = env.spec.observation_shape, env.spec.num_actions
    network = make_network(config, shape, actions, seed)
    randomize_advantages(network)
    parameters = ParameterServer({k: v.clone() for k, v in network.state_dict().items()})
    actor = Actor(
        env,
        Player(make_algorithm(config), make_network(config, shape, actions, seed + 1), env.num_envs, env.spec),
        parameters,
        config.data,
        len(make_index_space(config.index_space).names),
        generator=torch.Generator().manual_seed(seed),
        env_seed=seed,
        clock=Clock(),
    )
    return actor, network


def randomize_advantages(network: AgentNetwork) -> None:
    """Randomize the advantage heads, which start at zero, for tests of policies and gradients."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if ".advantage." in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator))


def collect_windows(actor: Actor, count: int) -> list[Window]:
    return [actor.collect(lambda envs: [(1.0, 2.0, 0.5)] * len(envs), 10**9)[0] for _ in range(count)]


def random_batch(config: Config, spec: Any, batch: int, seed: int = 0) -> Window:
    """Return a batch of noise whose episodes end and start as the time convention says."""
    rng = np.random.default_rng(seed)
    length = config.data.window_steps
    ended = rng.random((length, batch)) < 0.15
    ended[1:] &= ~ended[:-1]
    resets = np.zeros_like(ended)
    resets[1:] = ended[:-1]
    starts = np.zeros((length + 1, batch), bool)
    starts[1:] = resets
    by_time_limit = rng.random((length, batch)) < 0.5
    return window_from(
        {
            "obs": rng.standard_normal((length + 1, batch, *spec.observation_shape)).astype(np.float32),
            "episode_start": starts,
            "previous_action": rng.integers(spec.num_actions, size=(length + 1, batch)),
            "previous_reward": rng.standard_normal((length + 1, batch)).astype(np.float32),
            "action": rng.integers(spec.num_actions, size=(length, batch)),
            "reward": rng.standard_normal((length, batch)).astype(np.float32),
            "terminated": ended & ~by_time_limit,
            "truncated": ended & by_time_limit,
            "valid": ~resets,
            "behavior_prob": rng.uniform(0.2, 1.0, (length, batch)).astype(np.float32),
            "index": np.stack([rng.uniform(0, high, (length + 1, batch)) for high in (3, 3, 1)], -1).astype(np.float32),
            "version": np.zeros((length, batch), np.int64),
            "state": np.zeros(
                (batch, *make_network(config, spec.observation_shape, spec.num_actions, 0).initial_state(1).shape[1:]),
                np.float32,
            ),
        }
    )


def transitions(index: torch.Tensor, **fields: torch.Tensor) -> Transitions:
    """Return data for a loss whose network output is given; of the inputs only λ matters.

    λ has the shape [T or T + 1, B, 3].
    """
    steps, batch = fields["action"].shape
    if len(index) == steps:
        index = torch.cat([index, index[-1:]])
    nothing = torch.zeros(steps + 1, batch)
    fields.setdefault("truncated", torch.zeros(steps, batch, dtype=torch.bool))
    return Transitions(seen=seen_of(nothing, nothing, nothing, nothing, index), **fields)


def seen_of(*parts: torch.Tensor) -> Seen:
    """Return what the agent sees where nothing is beside the observation and all actions are valid."""
    index = parts[-1]  # [T, B, components of λ]
    return Seen(*parts, index[..., :0], index[..., :0] > 0)


def read_metric_lines(run_dir: Path) -> list[dict[str, Any]]:
    """Return the lines of metrics.jsonl without the values that depend on timing."""
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    for line in lines:
        line.pop("clock")
    return lines


def saved_network(run_dir: Path) -> dict[str, Any]:
    """Return θ of the newest checkpoint, which must be complete."""
    state = CheckpointStore(run_dir / "checkpoints", 3, pytest.fail).newest()
    assert state is not None
    return dict(state["system"]["learner"]["network"])


def error_line(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one stderr line of a command that ends with exit code 2 and prints nothing to stdout."""
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("gdi: error: ")
    return err


class RecordingConsole:
    """A console that records its events."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def event(self, event: dict[str, Any]) -> None:
        if event["kind"] == "notice":
            self.notices.append(event["text"])

    def episode(self, steps: int, episode: EpisodeEnd) -> None: ...

    def close(self) -> None: ...


class Stopper(RecordingConsole):
    """A console that sends the process SIGTERM once the run has reached a number of steps."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self._steps = steps

    def event(self, event: dict[str, Any]) -> None:
        if event["kind"] == "progress" and event["steps"] >= self._steps:
            os.kill(os.getpid(), signal.SIGTERM)


def stop_after(steps: int) -> Stopper:
    return Stopper(steps)
