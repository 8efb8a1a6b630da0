"""How much the comparison over games depends on its choices: the divisor, the mean, the trimming, and shared seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.minatar_sweep.stats import NORMALIZER, TARGET
from benchmarks.minatar_sweep.tables import agents_in, games_in, label, number, section, table
from gdi.scores import metrics
from gdi.scores.runs import BOOTSTRAP, Run, normalizer, score_matrix
from gdi.types import Array

DIVISORS = (NORMALIZER, TARGET)


def seed_matrix(runs: Sequence[Run], agent: str, games: Sequence[str]) -> Array:
    """Return an agent's final scores, ``[seeds, games]``, with NaN for missing runs."""
    found = {(run.seed, run.game): run.final for run in runs if run.agent == agent}
    seeds = sorted({seed for seed, _ in found})
    return np.array([[found.get((seed, game), np.nan) for game in games] for seed in seeds])


def geometric_mean(scores: Array) -> float:
    """Return the geometric mean over games of each game's mean: exp(mean log m_g).

    Another divisor multiplies it by the same factor for all agents, so their order never depends on the divisor.
    """
    with np.errstate(divide="ignore"):
        return float(np.exp(np.mean(np.log(metrics.game_means(scores)))))


def block_interval(scores: Array, rng: np.random.Generator) -> tuple[float, float]:
    """Return the 95% interval of the IQM if whole seeds are drawn, each with all its games: scores [seeds, games].

    Runs of one seed start from the same random numbers in every game, so they may not be independent.
    """
    seeds = len(scores)
    drawn = rng.multinomial(seeds, np.full(seeds, 1 / seeds), BOOTSTRAP.replicates)  # [replicates, seeds]
    counts = np.isfinite(scores) * drawn[:, :, None]  # [replicates, seeds, games]
    low, high = np.quantile(metrics.iqm(scores, counts), [0.025, 0.975])
    return float(low), float(high)


def kept_runs(scores: Array) -> Array:
    """Return how many runs of each game the IQM keeps; it drops ⌊n / 4⌋ of all n runs at each end."""
    flat = scores.ravel()
    order = np.argsort(flat, kind="stable")  # NaN comes last
    n = int(np.isfinite(flat).sum())
    kept = np.zeros(flat.shape, bool)
    kept[order[n // 4 : n - n // 4]] = True
    return np.asarray(kept.reshape(scores.shape).sum(axis=0))


def choices(runs: Sequence[Run]) -> str:
    """Return each agent's number over all games under every choice."""
    title, games = "Over all games, under other choices", games_in(runs)
    divisors = {peer: normalizer(runs, peer, games) for peer in DIVISORS}
    if not all(np.isfinite(divisor).all() for divisor in divisors.values()):
        return section(title, "Not computed: DQN and PPO need a score above 0 in every game.")
    rows = []
    for agent in agents_in(runs):
        scores = seed_matrix(runs, agent, games)
        by_dqn = scores / divisors[NORMALIZER]
        low, high = block_interval(by_dqn, np.random.default_rng(BOOTSTRAP.seed))
        rows.append(
            [
                label(agent),
                *(number(float(metrics.iqm(scores / divisor)), 2) for divisor in divisors.values()),
                *(number(float(metrics.mean(scores / divisor)), 2) for divisor in divisors.values()),
                number(geometric_mean(by_dqn), 2),
                f"[{low:.2f}, {high:.2f}]",
            ]
        )
    header = ["agent", "IQM / DQN", "IQM / PPO", "mean / DQN", "mean / PPO", "geometric mean / DQN", "seeds as blocks"]
    told = (
        "Scores are divided by DQN's or by PPO's mean final score in the same game. The order by the geometric mean "
        "does not depend on the divisor. The last column is the 95% interval of the first if whole seeds are drawn. "
        "Runs of one seed start from the same random numbers in every game."
    )
    return section(title, told, table(header, rows))


def trimming(runs: Sequence[Run]) -> str:
    """Return how many runs of each game count in each agent's IQM."""
    title, games = "Runs that the IQM keeps", games_in(runs)
    divisor = normalizer(runs, NORMALIZER, games)
    if not np.isfinite(divisor).all():
        return section(title, "Not computed: DQN needs a score above 0 in every game.")
    rows = []
    for agent in agents_in(runs):
        scores = score_matrix(runs, agent, games)
        there = np.isfinite(scores).sum(axis=0)
        cells = [f"{kept} of {n}" for kept, n in zip(kept_runs(scores / divisor), there, strict=True)]
        rows.append([label(agent), *cells])
    told = "The IQM drops a quarter of the runs at each end. A game whose runs are all dropped does not move it."
    return section(title, told, table(["agent", *games], rows))
