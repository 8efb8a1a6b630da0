"""The networks: a torso encodes an observation, a core remembers, and the algorithm adds the heads."""

from gdi.networks.agent import AgentNetwork, AgentOutput, Architecture, Seen, make_network
from gdi.networks.frames import FrameHistory, stack_frames

__all__ = ["AgentNetwork", "AgentOutput", "Architecture", "FrameHistory", "Seen", "make_network", "stack_frames"]
