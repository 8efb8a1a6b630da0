"""The settings of the peers, agents of Stable-Baselines3 that are jobs of a sweep like our presets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gdi.errors import UserError, did_you_mean

PEERS = ("sb3-ppo", "sb3-dqn", "sb3-qrdqn", "sb3-recurrent-ppo")
# Settings of a plan that begin so are arguments of Stable-Baselines3.
OWN = "sb3."
# These are settings of our presets that peers have, too.
EVALUATION = ("evaluation.every_steps", "evaluation.episodes")


def is_peer(preset: str) -> bool:
    return preset in PEERS


def check_peer_setting(name: str, where: str) -> None: ...


def peer_problems(preset: str, settings: Mapping[str, object]) -> Iterator[str]:
    yield from ()


def peer_config(preset: str, env: str, seed: int, steps: int, settings: Mapping[str, object]) -> dict[str, object]:
    return {}
