"""All claims, counterexamples and learning runs as one plain record."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gdi.theory import counterexamples, paper_errors
from gdi.theory.claims import CLAIMS, Claim, Verdict
from gdi.theory.learning import SETTINGS, Comparison, Setting, compare
from gdi.theory.measures import TOLERANCE
from gdi.theory.search import Counterexample, NotFoundError, Search

# The rate of a counterexample is estimated on at most this many instances, because three digits are enough.
RATE_INSTANCES = 10_000

# (setting, with a natural gradient) -> the expected effect of E on the mean target and on the best index.
EXPECTED = {
    ("helps", False): "wins",
    ("clipped", False): "loses",
    ("trap", False): "loses",
    ("helps", True): "wins",
    ("clipped", True): "mixed",
    ("trap", True): "mixed",
}


@dataclass(frozen=True)
class Report:
    """The results; a search that found nothing has None for its counterexample."""

    trials: int
    seed: int
    claims: tuple[tuple[Claim, Verdict], ...]
    dropped: tuple[tuple[str, Counterexample | None], ...]
    slips: tuple[tuple[str, Counterexample | None], ...]
    learning: tuple[Comparison, ...]

    @property
    def ok(self) -> bool:
        """Return whether all claims hold, all counterexamples exist, and E affects learning as documented."""
        return (
            all(verdict.holds for _, verdict in self.claims)
            and all(found is not None for _, found in (*self.dropped, *self.slips))
            and all(outcome(run) == expected(run.setting) for run in self.learning)
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "trials": self.trials,
            "seed": self.seed,
            "tolerance": TOLERANCE,
            "ok": self.ok,
            "claims": [
                {
                    "key": claim.key,
                    "label": claim.label,
                    "statement": claim.statement,
                    "instances": verdict.instances,
                    "worst_margin": verdict.worst,
                    "strict_share": verdict.strict,
                    "holds": verdict.holds,
                }
                for claim, verdict in self.claims
            ],
            "dropped_assumptions": [_example(key, found) for key, found in self.dropped],
            "slips_of_the_text": [_example(key, found) for key, found in self.slips],
            "learning": [_learning(run) for run in self.learning],
        }


def outcome(run: Comparison) -> str:
    """Return "wins" or "loses" if the mean target and the best index agree, and "mixed" otherwise."""
    target, best = run.advantage()
    return "wins" if min(target, best) > 0 else "loses" if max(target, best) < 0 else "mixed"


def expected(setting: Setting) -> str:
    return EXPECTED[setting.name, setting.natural]


def _example(key: str, found: Counterexample | None) -> dict[str, Any]:
    if found is None:
        return {"key": key, "found": False}
    return {
        "key": key,
        "found": True,
        "label": found.label,
        "dropped": found.dropped,
        "claim": found.claim,
        "left": found.left,
        "right": found.right,
        "margin": found.margin,
        "candidates_searched": found.searched,
        "example": found.example,
        "rate_on_random_instances": found.rate,
        "random_instances": found.instances,
    }


def _learning(run: Comparison) -> dict[str, Any]:
    target, best = run.advantage()
    return {
        "setting": run.setting.name,
        "operator_t": "natural gradient" if run.setting.natural else "gradient",
        "iterations": run.setting.iterations,
        "assumption_3_held": float(np.mean(run.with_e.assumption_3)),
        "theorem_1_smallest_gain": float(np.min(run.with_e.frozen_gain)),
        "theorem_1_as_printed_smallest_gain": float(np.min(run.with_e.moving_gain)),
        "mean_target_advantage": target,
        "best_index_advantage": best,
        "final_target_with_e": float(run.with_e.target[-1]),
        "final_target_without_e": float(run.without_e.target[-1]),
        "final_best_with_e": float(run.with_e.best[-1]),
        "final_best_without_e": float(run.without_e.best[-1]),
        "e": outcome(run),
        "expected": expected(run.setting),
    }


def generator(seed: int, key: str) -> np.random.Generator:
    """Return the generator of one check.

    Each check has its own stream, so adding a check changes no other.
    """
    return np.random.default_rng([seed, zlib.crc32(key.encode())])


def _search(search: Search, rng: np.random.Generator, trials: int) -> Counterexample | None:
    try:
        return search(rng, trials)
    except NotFoundError:
        return None


def learning_settings() -> list[Setting]:
    """Return each setting with a gradient T and with a natural-gradient T.

    The latter divides by d(s), so it takes smaller steps.
    """
    plain = [make() for make in SETTINGS]
    return plain + [replace(setting, natural=True, step=0.001) for setting in plain]


def num_progress_steps() -> int:
    """Return how many times ``execute`` reports progress."""
    return len(CLAIMS) + len(counterexamples.SEARCHES) + len(paper_errors.SEARCHES) + len(learning_settings())


def execute(trials: int, seed: int, progress: Callable[[str], None]) -> Report:
    """Run all checks; ``progress`` receives the name of each check before it starts."""

    def check(claim: Claim) -> tuple[Claim, Verdict]:
        progress(claim.key)
        return claim, claim.check(generator(seed, claim.key), trials)

    def search(key: str, look: Search) -> tuple[str, Counterexample | None]:
        progress(key)
        return key, _search(look, generator(seed, key), min(trials, RATE_INSTANCES))

    def learn(setting: Setting) -> Comparison:
        progress(f"learning: {setting.name}")
        return compare(setting)

    return Report(
        trials,
        seed,
        tuple(check(claim) for claim in CLAIMS),
        tuple(search(key, look) for key, look in counterexamples.SEARCHES.items()),
        tuple(search(key, look) for key, look in paper_errors.SEARCHES.items()),
        tuple(learn(setting) for setting in learning_settings()),
    )
