"""The networks: a torso encodes an observation, a core remembers, and the algorithm adds the heads."""

from gdi.networks.agent import AgentNetwork, AgentOutput, Architecture, Seen, copy_parameters, make_network
from gdi.networks.frames import FrameHistory, stack_frames

__all__ = [
    "AgentNetwork",
    "AgentOutput",
    "Architecture",
    "FrameHistory",
    "Seen",
    "copy_parameters",
    "make_network",
    "stack_frames",
]
