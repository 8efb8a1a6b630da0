"""The networks: torsos encode one observation, a core remembers, heads give A and V, and an agent composes them."""

from gdi.networks.agent import AgentInput, AgentNetwork, AgentOutput, make_network

__all__ = ["AgentInput", "AgentNetwork", "AgentOutput", "make_network"]
