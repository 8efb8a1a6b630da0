"""Atari evaluation protocols: every choice that changes a score, written out, never a library's default."""

from __future__ import annotations

from dataclasses import dataclass

from gdi.errors import UserError, nearest


@dataclass(frozen=True)
class Protocol:
    """How a game is presented and when an episode is cut. All times are in emulator frames."""

    name: str
    summary: str
    sticky_action_prob: float  # per emulator frame, the last action is repeated instead of the chosen one
    max_noop_frames: int  # an episode begins after 1 to this many no-op frames, uniformly; 0: after none
    cut_frames: int  # an episode is cut (truncated) when this many frames have been played
    stuck_frames: int = 0  # and when this many frames have passed without a reward; 0: never
    # tab:ale_process, the same in every protocol here.
    full_action_space: bool = True  # all actions the game's emulator has: 18, and in Skiing, which has no button, 9
    life_information: bool = False  # losing a life ends nothing, and is shown nowhere
    clip_rewards: bool = False
    fire_on_reset: bool = False
    image_side: int = 84  # gray
    action_repeat: int = 4  # emulator frames per step, the last two max-pooled
    frame_stack: int = 4

    def cut_steps(self, max_episode_steps: int) -> int:
        """The protocol's cut in steps, or a shorter one that a config asks for (0: none)."""
        steps = self.cut_frames // self.action_repeat
        return min(steps, max_episode_steps or steps)

    @property
    def stuck_steps(self) -> int:
        return self.stuck_frames // self.action_repeat


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            "paper",
            "the paper's pre-processing: no sticky actions, 1-30 no-ops, cut at 100,000 frames",
            sticky_action_prob=0.0,
            max_noop_frames=30,
            cut_frames=100_000,
        ),
        Protocol(
            "machado",
            "Machado et al. 2018: sticky actions 0.25, no no-ops, cut at 108,000 frames",
            sticky_action_prob=0.25,
            max_noop_frames=0,
            cut_frames=108_000,
        ),
        Protocol(
            "saber",
            "Toromanoff et al. 2019: sticky actions 0.25, cut after 5 minutes without a reward, else after 100 hours",
            sticky_action_prob=0.25,
            max_noop_frames=0,
            cut_frames=100 * 3600 * 60,
            stuck_frames=5 * 60 * 60,
        ),
    )
}


def find_protocol(name: str) -> Protocol:
    if not name:
        raise UserError(f"an Atari game needs --env.protocol: one of {', '.join(PROTOCOLS)}.")
    if name not in PROTOCOLS:
        raise UserError(f"unknown protocol {name!r}.{nearest(name, PROTOCOLS)} Protocols: {', '.join(PROTOCOLS)}.")
    return PROTOCOLS[name]
