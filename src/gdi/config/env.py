"""The environment, and how many copies of it are stepped together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gdi.config.checks import not_negative, positive

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class EnvConfig:
    """The environment, and how many copies of it are stepped together."""

    id: str = ""
    """Id of the environment, such as CartPole-v1, MinAtar/Breakout-v0 or ALE/Pong-v5. The option is --env."""
    num_envs: int = 160
    """Number of environments that are stepped together. Table H "Num. Environments"."""
    max_episode_steps: int = 0
    """Steps after which an episode is truncated; 0 keeps the environment's own limit."""
    protocol: Literal["", "paper", "machado", "saber"] = ""
    """Rules by which Atari games are shown and truncated. "paper" is tab:ale_process."""

    def problems(self, config: Config) -> Iterator[str]:
        if not self.id:
            yield "no environment given: add --env, for example --env CartPole-v1."
        yield from positive(self, "env", "num_envs")
        yield from not_negative(self, "env", "max_episode_steps")
