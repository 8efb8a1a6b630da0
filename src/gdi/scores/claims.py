"""Errors that a cell-by-cell comparison misses: unusual baselines, and claims in the prose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gdi.scores import metrics
from gdi.scores.agents import published_agents
from gdi.scores.games import GAMES, title
from gdi.scores.paper import quantity_name
from gdi.scores.reference import Reference, corrections, load_reference
from gdi.scores.summaries import summarize
from gdi.scores.tables import Cell, Column, Table


def baseline_shift_table() -> Table:
    """Return the baselines that differ from the standard list, and how far each moves GDI-H3's mean HNS."""
    agent = published_agents("paper")["gdi_h3"]
    paper = load_reference("paper")
    start = _mean_hns(paper)
    rows: list[tuple[Cell, ...]] = []
    for correction in corrections():
        if correction.reference != "standard" or correction.column not in ("random", "human"):
            continue
        index = GAMES.index(correction.game)
        used = float(getattr(paper, correction.column)[index])
        if used == correction.value:
            continue
        single = Reference("one change", *(getattr(paper, c).copy() for c in ("random", "human", "world_record")))
        getattr(single, correction.column)[index] = correction.value
        before, after = (100 * float(metrics.hns(agent.scores, r)[0, index]) for r in (paper, single))
        rows.append(
            (
                title(correction.game),
                correction.column,
                used,
                correction.value,
                before,
                after,
                _mean_hns(single) - start,
            )
        )
    end = _mean_hns(load_reference("standard"))
    columns = (
        Column("game", "game"),
        Column("baseline", "baseline"),
        Column("paper", "paper", "raw"),
        Column("standard", "standard", "raw"),
        Column("hns_before", "GDI-H3 HNS % (paper)", ".2f"),
        Column("hns_after", "(standard)", ".2f"),
        Column("shift", "change of its mean HNS", "+.2f"),
    )
    note = (
        f"With the standard list GDI-H3's mean HNS is {end:.1f}% instead of {start:.1f}%. "
        "Nearly all of the difference comes from video pinball, where a random policy scores 16256.9 "
        "and the human only 1411 points more. `--reference` chooses the list."
    )
    return Table("baselines", "Baselines that differ from the standard list", columns, tuple(rows), notes=(note,))


def _mean_hns(reference: Reference) -> float:
    return 100 * float(metrics.mean(metrics.hns(published_agents("paper")["gdi_h3"].scores, reference)))


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper that numbers can test.

    `test` returns whether the claim holds, and the evidence.
    """

    line: int
    text: str
    test: Callable[[], tuple[bool, str]]


def _value(agent: str, quantity: str) -> float:
    return summarize(published_agents("paper")[agent], load_reference("paper")).values[quantity]


def _leads(agents: tuple[str, ...], quantities: tuple[str, ...], among: Callable[[float], bool]) -> tuple[bool, str]:
    """Return whether no other agent beats any of `agents` on a quantity.

    Only agents whose frames satisfy `among` are compared, without GDI's own.
    """
    rivals = {
        name: agent
        for name, agent in published_agents().items()
        if name not in _BOTH and agent.frames is not None and among(agent.frames)
    }
    failures = []
    for quantity in quantities:
        best = max(rivals, key=lambda name: _value(name, quantity))
        for agent in agents:
            mine, theirs = _value(agent, quantity), _value(best, quantity)
            if mine < theirs:
                unit, scale = ("", 1) if quantity == "hwrb" else ("%", 100)
                failures.append(
                    f"{quantity_name(quantity)}: {published_agents()[agent].name} {scale * mine:.2f}{unit}, "
                    f"{rivals[best].name} {scale * theirs:.2f}{unit}"
                )
    return not failures, "; ".join(failures) or "no rival is ahead"


_EVERYTHING = ("hwrb", "mean_hns", "median_hns", "mean_hwrns", "median_hwrns", "mean_saber", "median_saber")
_BOTH = ("gdi_i3", "gdi_h3")


def _at_200m(frames: float) -> bool:
    return frames == 2e8


def _large(frames: float) -> bool:
    return frames >= 1e10


def _any(frames: float) -> bool:
    return True


def _times_human() -> tuple[bool, str]:
    value = _value("gdi_h3", "mean_hns")
    return value > 90, f"mean HNS {100 * value:.1f}%, {value:.1f} times the average human"


def _months() -> tuple[bool, str]:
    months = 12 * metrics.game_time(2e8)
    return months < 1.5, f"{metrics.game_time(2e8):.3f} years = {months:.2f} months"


def _truncation() -> tuple[bool, str]:
    return 30 * 60 * 60 == 100_000, "30 minutes at the console's 60 Hz are 108,000 frames"


CLAIMS = (
    Claim(178, "1146.39% median HNS, which achieves new SOTA", lambda: _leads(("gdi_h3",), ("median_hns",), _any)),
    Claim(181, "our method has surpassed 22 human world records, which has also surpassed all previous algorithms",
          lambda: _leads(("gdi_h3",), ("hwrb",), _any)),
    Claim(574, "more than 90 times the average human score", _times_human),
    Claim(574, "playing from scratch for less than 1.5 months", _months),
    Claim(604, "both have achieved new SOTA among all 200M scale algorithms on all evaluation criteria",
          lambda: _leads(_BOTH, _EVERYTHING, _at_200m)),
    Claim(604, "the best mean final performance ... compared with all 10B+ scale algorithms",
          lambda: _leads(("gdi_h3",), ("mean_hns", "mean_hwrns", "mean_saber"), _large)),
    Claim(1844, "100K frames (or 30 minutes of simulated play)", _truncation),
)  # fmt: skip


def claims_table() -> Table:
    """Return a table of the tested claims, including those that hold."""
    rows: list[tuple[Cell, ...]] = []
    for claim in CLAIMS:
        holds, evidence = claim.test()
        rows.append((f"L{claim.line}", f'"{claim.text}"', "yes" if holds else "no", evidence))
    columns = (
        Column("line", "line"),
        Column("claim", "claim"),
        Column("holds", "holds"),
        Column("evidence", "evidence"),
    )
    notes = (
        "Three more errors are in the text. The Scale row of hwrns_other (L2740) is shifted by one cell. Rainbow's "
        "scores are said to be from the IMPALA paper (L562) and from the Rainbow paper (L2111). The text announces DQN "
        "for the benchmark figures (L883, L927, L971, L1015), but no table has it.",
    )
    return Table("claims", "Claims in the prose, tested", columns, tuple(rows), notes=notes)
