"""The networks: torsos encode one observation, a core remembers, heads give A and V, and an agent composes them."""

from gdi.networks.agent import AgentInput, AgentNetwork, AgentOutput, make_network
from gdi.networks.frames import FrameHistory, stack_frames

__all__ = ["AgentInput", "AgentNetwork", "AgentOutput", "FrameHistory", "make_network", "stack_frames"]
