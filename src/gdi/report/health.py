"""The health rules: one table that the console, the report and ``docs/metrics.md`` share."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gdi.report.log import Line, series
from gdi.types import Array

# A rule is judged on the newest quarter of the lines, so that one noisy line is no alarm.
NEWEST_SHARE = 4
ENOUGH_LINES = 4


@dataclass(frozen=True)
class Rule:
    """One number to watch, its healthy range, and what to do outside of it."""

    name: str  # a short label
    metrics: tuple[str, ...]  # in the log
    measure: Callable[[Sequence[Line]], Array]  # what is judged, [lines]
    measured: str  # the same in words
    healthy: str
    advice: str
    low: float = -math.inf
    high: float = math.inf

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Finding:
    """The state of one rule in a run."""

    rule: Rule
    value: float
    values: Array  # [lines], NaN where nothing was logged

    @property
    def healthy(self) -> bool:
        return self.rule.holds(self.value)

    @property
    def text(self) -> str:
        """Return the finding as one sentence."""
        if self.healthy:
            return f"{self.rule.name} {self.value:.3g} is healthy."
        return f"{self.rule.name} {self.value:.3g} is not healthy ({self.rule.healthy}): {self.rule.advice}."


def judge(rule: Rule, lines: Sequence[Line]) -> Finding | None:
    """Judge a rule on the newest lines, or return None if the run has logged too few."""
    values = rule.measure(lines)
    known = values[np.isfinite(values)]
    if known.size < ENOUGH_LINES:
        return None
    newest = known[-max(1, known.size // NEWEST_SHARE) :]
    return Finding(rule, float(np.median(newest)), values)


def findings(lines: Sequence[Line]) -> list[Finding]:
    """Return the state of every rule that this run's metrics allow to judge."""
    found = (judge(rule, lines) for rule in RULES)
    return [finding for finding in found if finding is not None]


def of(name: str) -> Callable[[Sequence[Line]], Array]:
    """Measure a metric as it is logged."""
    return lambda lines: series(lines, name)


def kept_gain(lines: Sequence[Line]) -> Array:
    """Return how much of the best gain in return so far the run still has: 1 at its best, 0 back at its start.

    Returns are averaged over a tenth of the lines. There is nothing to keep before the first gain.
    """
    returns = series(lines, "episode/return")
    known = np.flatnonzero(np.isfinite(returns))
    out = np.full(len(returns), np.nan)
    width = max(1, known.size // 10)
    if known.size <= width:
        return out
    sums = np.cumsum(np.concatenate([[0.0], returns[known]]))
    smooth = (sums[width:] - sums[:-width]) / width
    gain = smooth - smooth[0]
    best = np.maximum.accumulate(gain)
    out[known[width - 1 :]] = np.where(best > 0, gain / np.where(best > 0, best, 1.0), np.nan)
    return out


def value_gap(lines: Sequence[Line]) -> Array:
    """Return |mean target - mean V|, relative to the larger of |mean target| and a tenth."""
    target, value = series(lines, "value/target_mean"), series(lines, "value/mean")
    return np.asarray(np.abs(target - value) / np.maximum(np.abs(target), 0.1))


RULES = (
    Rule(
        "return",
        ("episode/return",),
        kept_gain,
        "share of the best gain in return that is kept",
        "rising; half of the best gain is kept",
        "compare with the other rows",
        low=0.5,
    ),
    Rule(
        "entropy",
        ("policy/entropy",),
        of("policy/entropy"),
        "entropy of the policy, in nats",
        "falls slowly; above 0.02",
        "near 0 for long means collapse; try a lower `--learner.policy-loss-scale`",
        low=0.02,
    ),
    Rule(
        "ratio",
        ("policy/ratio_mean",),
        of("policy/ratio_mean"),
        "mean importance ratio π/μ",
        "between 0.8 and 1.25",
        "try a lower `--optimizer.learning-rate` or `--data.replay`",
        low=0.8,
        high=1.25,
    ),
    Rule(
        "KL",
        ("policy/kl",),
        of("policy/kl"),
        "PPO: KL divergence from the policy that acted, in nats",
        "at most 0.05",
        "try a lower `--optimizer.learning-rate`",
        high=0.05,
    ),
    Rule(
        "scale of A",
        ("policy/advantage_scale",),
        of("policy/advantage_scale"),
        "spread of A over actions",
        "at most 3",
        "every temperature is greedy there; try a lower `--learner.reward-scales`",
        high=3.0,
    ),
    Rule(
        "value gap",
        ("value/mean", "value/target_mean"),
        value_gap,
        "distance of the mean V from its mean target, relative to the target",
        "at most 0.25",
        "try a higher `--learner.v-loss-scale`",
        high=0.25,
    ),
    Rule(
        "explained variance",
        ("value/explained_variance",),
        of("value/explained_variance"),
        "PPO: share of the targets' variance that V explains",
        "above 0; rises toward 1",
        "try a higher `--optimizer.learning-rate`",
        low=0.0,
    ),
    Rule(
        "skipped updates",
        ("learner/skipped",),
        of("learner/skipped"),
        "share of updates that were NaN or infinite",
        "0",
        "try a lower `--optimizer.learning-rate`",
        high=0.0,
    ),
)


def table_in_markdown() -> str:
    """Return the rules as the table in ``docs/metrics.md``."""
    rows = [
        f"| {', '.join(f'`{name}`' for name in rule.metrics)} | {rule.measured} | {rule.healthy} | {rule.advice} |"
        for rule in RULES
    ]
    return "\n".join(["| look at | measured | healthy | if not |", "|---|---|---|---|", *rows])
