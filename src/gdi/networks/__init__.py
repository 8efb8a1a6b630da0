"""The networks: torsos encode one observation, a core remembers, and an agent adds the algorithm's heads."""

from gdi.networks.agent import AgentNetwork, AgentOutput, Architecture, Seen, make_network
from gdi.networks.frames import FrameHistory, stack_frames

__all__ = ["AgentNetwork", "AgentOutput", "Architecture", "FrameHistory", "Seen", "make_network", "stack_frames"]
