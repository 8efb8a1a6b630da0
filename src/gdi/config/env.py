"""Which environment, and how many copies act side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gdi.config.checks import not_negative, positive

if TYPE_CHECKING:
    from gdi.config.whole import Config


@dataclass(frozen=True)
class EnvConfig:
    """Which environment, and how many copies act side by side."""

    id: str = ""
    """Gymnasium id, such as CartPole-v1, or MinAtar/Breakout-v0, or an Atari game: ALE/Pong-v5. Typed as --env."""
    num_envs: int = 160
    """Environments stepped together. Table H "Num. Environments"."""
    max_episode_steps: int = 0
    """Cut episodes here, as truncation; 0 keeps the environment's own limit."""
    protocol: Literal["", "paper", "machado", "saber"] = ""
    """Atari only: how the games are presented and cut. "paper" is tab:ale_process."""

    def problems(self, config: Config) -> Iterator[str]:
        if not self.id:
            yield "no environment given: add --env, for example --env CartPole-v1."
        yield from positive(self, "env", "num_envs")
        yield from not_negative(self, "env", "max_episode_steps")
