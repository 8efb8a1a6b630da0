"""The paper's claims about which agent beats which, as pairs that can be measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    better: str
    worse: str
    what: str


E_MATTERS = "the operator E matters"
CAPACITY = "the capacity of the behavior policy space matters"
ABOVE_PEERS = "GDI is above other model-free agents"
ABLATIONS = {
    "fixed": E_MATTERS,
    "fixed-unscaled": E_MATTERS,
    "random": E_MATTERS,
    "boltzmann": CAPACITY,
    "epsilon-greedy": CAPACITY,
}
GDI = ("gdi-i3", "gdi-i3-q10", "gdi-h3")
# GDI-I3 with the settings of the ablations and of GDI-H3.
PARENT = "gdi-i3-q10"

# These claims come from the section "Ablation Study" and the tables of results.
CLAIMS = (
    Claim("gdi-h3", PARENT, "two families of variables are better than one"),
    *(Claim(agent, ablation, what) for agent in (PARENT, "gdi-h3") for ablation, what in ABLATIONS.items()),
    *(Claim(agent, peer, ABOVE_PEERS) for agent in GDI for peer in ("ppo", "dqn")),
)
