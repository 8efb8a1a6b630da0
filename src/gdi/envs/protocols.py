"""Atari evaluation protocols, which set every choice that changes a score explicitly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from gdi.config import EnvConfig
from gdi.errors import UserError, did_you_mean


@dataclass(frozen=True)
class AtariProtocol:
    """The presentation of a game and the limits of its episodes. All times are in emulator frames."""

    name: str
    summary: str
    sticky_action_prob: float  # probability per emulator frame that the last action repeats
    max_noop_frames: int  # an episode starts after 1 to this many no-op frames, uniformly; 0 means no no-ops
    cut_frames: int  # an episode is truncated after this many frames
    stuck_frames: int = 0  # an episode is also truncated after this many frames without a reward; 0 means never
    # All protocols share these values of tab:ale_process.
    full_action_space: bool = True  # all actions of the emulator: 18, but 9 in Skiing, which has no button
    life_information: bool = False  # True: ALE ends the episode and restarts the game when a life is lost
    image_side: int = 84  # gray
    action_repeat: int = 4  # emulator frames per step, the last two max-pooled
    frame_stack: int = 4

    def cut_steps(self, max_episode_steps: int) -> int:
        """Return the episode limit in steps: the protocol's, or a shorter one from the config (0 means none)."""
        steps = self.cut_frames // self.action_repeat
        return min(steps, max_episode_steps or steps)

    @property
    def stuck_steps(self) -> int:
        return self.stuck_frames // self.action_repeat


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        AtariProtocol(
            "paper",
            "the paper's pre-processing: no sticky actions, 1-30 no-ops, cut at 100,000 frames",
            sticky_action_prob=0.0,
            max_noop_frames=30,
            cut_frames=100_000,
        ),
        AtariProtocol(
            "machado",
            "Machado et al. 2018: sticky actions 0.25, no no-ops, cut at 108,000 frames",
            sticky_action_prob=0.25,
            max_noop_frames=0,
            cut_frames=108_000,
        ),
        AtariProtocol(
            "saber",
            "Toromanoff et al. 2019: sticky actions 0.25, cut after 5 minutes without a reward, else after 100 hours",
            sticky_action_prob=0.25,
            max_noop_frames=0,
            cut_frames=100 * 3600 * 60,
            stuck_frames=5 * 60 * 60,
        ),
    )
}


def find_protocol(name: str) -> AtariProtocol:
    if not name:
        raise UserError(f"an Atari game needs --env.protocol: choose one of {', '.join(PROTOCOLS)}.")
    if name not in PROTOCOLS:
        raise UserError(f"unknown protocol {name!r}.{did_you_mean(name, PROTOCOLS)} Protocols: {', '.join(PROTOCOLS)}.")
    return PROTOCOLS[name]


# The settings of a protocol that --env.kwargs may change. A changed protocol has no normalized scores.
CHANGEABLE: dict[str, type] = {
    "full_action_space": bool,
    "life_information": bool,
    "max_noop_frames": int,
    "sticky_action_prob": float,
}


def protocol_of(config: EnvConfig) -> AtariProtocol:
    """Return the protocol of a game's config, with the settings that --env.kwargs changes."""
    protocol = find_protocol(config.protocol)
    changed: dict[str, Any] = config.arguments
    for name, value in changed.items():
        if name not in CHANGEABLE:
            raise UserError(
                f"--env.kwargs {name} is no setting of an Atari protocol.{did_you_mean(name, CHANGEABLE)} Settings: "
                f"{', '.join(CHANGEABLE)}."
            )
        kind = CHANGEABLE[name]
        if isinstance(value, bool) != (kind is bool) or not isinstance(value, (int, float) if kind is float else kind):
            raise UserError(f"--env.kwargs {name} must be of type {kind.__name__}, not {value!r}.")
    if config.max_episode_steps > protocol.cut_steps(0):
        raise UserError(
            f"--env.max-episode-steps {config.max_episode_steps} is more than protocol {protocol.name!r} allows "
            f"({protocol.cut_steps(0)}): lower it, or drop it."
        )
    changed_protocol = replace(protocol, **changed)
    if not 0 <= changed_protocol.sticky_action_prob <= 1:
        raise UserError(
            f"--env.kwargs sticky_action_prob must be in [0, 1], not {changed_protocol.sticky_action_prob}."
        )
    if changed_protocol.max_noop_frames < 0:
        raise UserError(f"--env.kwargs max_noop_frames must be 0 or more, not {changed_protocol.max_noop_frames}.")
    return changed_protocol


def protocol_changes(config: EnvConfig) -> str:
    """Return what a run changes in its protocol, such as ``episodes cut at 50 steps``, or an empty string."""
    return ", ".join(_changes(find_protocol(config.protocol), protocol_of(config), config.max_episode_steps))


def _changes(own: AtariProtocol, found: AtariProtocol, max_episode_steps: int) -> Iterator[str]:
    if found.cut_steps(max_episode_steps) < own.cut_steps(0):
        yield f"episodes cut at {max_episode_steps} steps"
    if found.full_action_space != own.full_action_space:
        yield "minimal actions"
    if found.sticky_action_prob != own.sticky_action_prob:
        yield f"sticky actions {found.sticky_action_prob:g}"
    if found.max_noop_frames != own.max_noop_frames:
        yield f"at most {found.max_noop_frames} no-ops"
    if found.life_information != own.life_information:
        yield "the loss of a life restarts the game"
