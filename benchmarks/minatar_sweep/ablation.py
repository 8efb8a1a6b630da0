"""The paper's ablation: its tables with our numbers, and a sentence for every claim."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.minatar_sweep.agents import AGENTS, live_config
from benchmarks.minatar_sweep.claims import CLAIMS
from benchmarks.minatar_sweep.stats import normalizer
from benchmarks.minatar_sweep.tables import agents_in, games_in, label, number, section, steps_text, table
from gdi.index_space import make_index_space
from gdi.scores import metrics
from gdi.scores.runs import Comparison, Run, compare, estimate, score_matrix
from gdi.theory.live import classify_config, controller_learns, varying_axes


def settings(runs: Sequence[Run]) -> str:
    """Return tab:ablation_setting with the measured outcome.

    Category, P⁰ and E are measured on the live presets.
    """
    games = games_in(runs)
    divisor = normalizer(runs, games)
    rows = []
    for agent in AGENTS.values():
        if agent.is_peer:
            continue
        config = live_config(agent)
        space = make_index_space(config.index_space)
        # The paper writes τ, but the axis is 1/τ.
        searched = [space.label_of(axis.name).removeprefix("1/") for axis in space.axes]
        if searched == ["τ1"]:
            searched = ["τ"]
        rows.append(
            [
                agent.label,
                str(classify_config(config)),
                f"λ = ({', '.join(searched)})",
                "Uniform" if varying_axes(config) else "Delta",
                "MAB" if controller_learns(config) else "Identical Mapping",
                estimate(metrics.iqm, score_matrix(runs, agent.name, games) / divisor).text(),
            ]
        )
    return section(
        "Ablation: settings and outcome",
        "The paper's table of settings, with the measured IQM.",
        table(["Name", "Category", "Λ", "P_Λ⁰", "E", "IQM"], rows),
    )


def score_table(runs: Sequence[Run]) -> str:
    """Return the paper's table of ablation scores.

    Each game has the score, and the score in percent of DQN's. The best is bold.
    """
    games = games_in(runs)
    agents = [name for name in agents_in(runs) if not AGENTS[name].is_peer]
    divisor = normalizer(runs, games)
    raw = {name: metrics.game_means(score_matrix(runs, name, games)) for name in agents}
    percent = {name: 100 * raw[name] / divisor for name in agents}
    rows = [
        ["Category", *(cell for name in agents for cell in (str(classify_config(live_config(AGENTS[name]))), ""))],
        ["Scale", *(cell for _ in agents for cell in (steps_text(runs), ""))],
    ]
    for i, game in enumerate(games):
        score = bold_best({name: float(raw[name][i]) for name in agents})
        share = bold_best({name: float(percent[name][i]) for name in agents})
        rows.append([game, *(cell for pair in zip(score, share, strict=True) for cell in pair)])
    for title, statistic in (("MEAN (%)", np.mean), ("MEDIAN (%)", np.median)):
        over = {}
        for name in agents:
            known = percent[name][np.isfinite(percent[name])]
            over[name] = float(statistic(known)) if known.size else math.nan
        rows.append([title, *(cell for value in bold_best(over) for cell in ("", value))])
    return section(
        "Ablation: scores",
        "This has the form of the paper's table, with percent of DQN's mean score instead of the human-normalized "
        "score. Means alone do not rank agents. Read them with the intervals above and the pairs below.",
        table(["Games", *(cell for name in agents for cell in (label(name), "DQN (%)"))], rows),
    )


def bold_best(values: Mapping[str, float]) -> list[str]:
    best = max((value for value in values.values() if math.isfinite(value)), default=math.nan)
    return [f"**{number(value)}**" if value == best else number(value) for value in values.values()]


def claims(runs: Sequence[Run]) -> str:
    games = games_in(runs)
    found = [(claim.what, compare(runs, claim.better, claim.worse, games)) for claim in CLAIMS]
    rows = [[pair(c), what, c.probability.text(), str(c.games), c.verdict] for what, c in found]
    return section(
        "Did the claims hold?",
        "P is the probability that a run of the first agent scores above a run of the second on a random game, with a "
        "95% bootstrap interval. A claim held if the whole interval is above 0.5, and did not hold if it is below. It "
        "is undecided if the interval includes 0.5, or if a game has a single run. With so few seeds, such intervals "
        "are more likely too narrow than too wide.",
        table(["pair", "the claim", "P", "games", "verdict"], rows),
        "\n".join(f"- {sentence(c, what, runs)}" for what, c in found),
    )


def pair(comparison: Comparison) -> str:
    return f"{label(comparison.better)} over {label(comparison.worse)}"


def sentence(comparison: Comparison, what: str, runs: Sequence[Run]) -> str:
    """Return one plain sentence about one pair."""
    head = f"{pair(comparison)} ({what}): {comparison.verdict}"
    if comparison.verdict == "not measured":
        return f"{head}; {comparison.because}."
    better, worse = (sum(run.agent == agent for run in runs) for agent in (comparison.better, comparison.worse))
    games = f"{comparison.games} game{'s' if comparison.games > 1 else ''}"
    return (
        f"{head}; a run of the first beats one of the second with probability {comparison.probability.text()} over "
        f"{games} ({better} and {worse} runs; the first has the higher mean in {comparison.ahead}), and "
        f"{comparison.because}."
    )
