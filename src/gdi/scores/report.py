"""Compares agents with published ones: aggregates, every game, and notes that readers should know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gdi.errors import UserError
from gdi.scores import metrics
from gdi.scores.agents import Agent, Mask
from gdi.scores.games import GAMES, title
from gdi.scores.improvement import Improvement, improvements
from gdi.scores.intervals import Bootstrap
from gdi.scores.reference import Reference, load_reference
from gdi.scores.summaries import Summary, replicate_notes, summarize


@dataclass(frozen=True)
class Report:
    """The result of `judge`."""

    reference: Reference
    mine: tuple[Summary, ...]
    others: tuple[Summary, ...]
    improvements: tuple[Improvement, ...]
    notes: tuple[str, ...]


def judge(
    agents: Sequence[Agent],
    against: Sequence[Agent] = (),
    reference: str = "paper",
    bootstrap: Bootstrap | None = None,
    common: bool = False,
) -> Report:
    """Compare the aggregates of `agents` with those of `against`, on the games that `agents` have.

    With `common`, all agents are restricted to the games that every one of them has. That makes the aggregates
    comparable at the price of fewer games. Otherwise each agent's aggregates cover the games it has, and a note says
    so.
    """
    if not agents:
        raise ValueError("there is no agent to judge")
    for agent in agents:
        if not agent.reported.any():
            raise UserError(f"{agent.name} has no score in any of the 57 games.")
    taken = {agent.name for agent in against}
    agents = [replace(agent, name=f"{agent.name} (yours)") if agent.name in taken else agent for agent in agents]
    table = load_reference(reference)
    played: Mask = np.any([agent.reported for agent in agents], axis=0)
    kept = []
    notes: list[str] = []
    for agent in against:
        cut = agent.restricted_to(played)
        if cut.reported.any():
            kept.append(cut)
        else:
            notes.append(f"{agent.name} is left out: it reports none of these games.")
    everyone = [*agents, *kept]
    if common:
        shared: Mask = np.all([agent.reported for agent in everyone], axis=0)
        if not shared.any():
            raise UserError("--common leaves no game: no game is reported by all of these agents.")
        everyone = [agent.restricted_to(shared) for agent in everyone]
        if shared.sum() < played.sum():
            notes.append(f"--common: {int(shared.sum())} of {int(played.sum())} games, those that every agent reports.")
    mine, others = everyone[: len(agents)], everyone[len(agents) :]
    notes += _coverage_notes(mine, others)
    notes += [note for agent in mine for note in _dominance_notes(agent, table)]
    if bootstrap is not None:
        notes += [note for agent in mine for note in replicate_notes(agent, bootstrap)]
    return Report(
        table,
        tuple(summarize(agent, table, bootstrap) for agent in mine),
        tuple(summarize(agent, table) for agent in others),
        improvements(mine, others, bootstrap),
        tuple(notes),
    )


def _coverage_notes(mine: Sequence[Agent], others: Sequence[Agent]) -> list[str]:
    notes = []
    for agent in mine:
        missing = [title(game) for game, there in zip(GAMES, agent.reported, strict=True) if not there]
        if missing:
            notes.append(
                f"{agent.name} has {57 - len(missing)} of the 57 games; its aggregates leave out {_listed(missing)}."
            )
        counts = [count for count in agent.runs_per_game if count]
        if max(counts) != min(counts):
            notes.append(
                f"{agent.name} has {min(counts)} to {max(counts)} runs per game; IQM and optimality gap pool the runs, "
                "so games with more runs weigh more there."
            )
        elif max(counts) == 1:
            notes.append(f"{agent.name} has one run per game: nothing is known about its variation over seeds.")
    played: Mask = np.any([agent.reported for agent in mine], axis=0)
    short = [f"{agent.name} ({int(agent.reported.sum())})" for agent in others if agent.reported.sum() < played.sum()]
    if short:
        notes.append(
            f"Fewer games than the {int(played.sum())} compared: {', '.join(short)}. "
            "Their aggregates are over the games they report; --common compares all agents on the same games."
        )
    return notes


def _dominance_notes(agent: Agent, reference: Reference) -> list[str]:
    """Name the few games that dominate the mean, which is the weakness of every mean HNS."""
    played = np.flatnonzero(agent.reported)
    normalized = metrics.hns(agent.scores[:, played], reference.restricted_to(agent.reported))
    which, shares = metrics.dominant_games(normalized)
    count = len(played)
    # "Few" is at most a fifth of the games, so fewer than five games never qualify.
    if not len(which) or len(which) > count // 5:
        return []
    names = [title(GAMES[place]) for place in played[which]]
    named = ", ".join(f"{name} {100 * share:.0f}%" for name, share in zip(names, shares, strict=True))
    mean = 100 * float(metrics.mean(np.delete(normalized, which, axis=1)))
    without = f" Without {'it' if len(which) == 1 else 'them'} the mean would be {mean:.1f}%."
    subject = "One game makes up" if len(which) == 1 else f"{len(which)} of {count} games make up"
    return [f"{agent.name}: {subject} {100 * shares.sum():.0f}% of its mean HNS ({named}).{without}"]


def _listed(names: Sequence[str], limit: int = 8) -> str:
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
