"""Algorithm 1's ``improve``: which θ is published, how often it is copied, and what a divergence leaves."""

from __future__ import annotations

from typing import Any

import pytest

from gdi.clock import Clock
from gdi.errors import DivergenceError
from gdi.iteration import improve


class Counting:
    """A learner whose θ is the number of its updates. A batch is "good", "skipped" or "fatal"."""

    def __init__(self) -> None:
        self.updates = 0
        self.copies = 0

    def update(self, batch: Any) -> dict[str, float]:
        if batch == "fatal":
            raise DivergenceError("no more")
        self.updates += batch == "good"
        return {"learner/skipped": float(batch == "skipped")}

    def parameters(self) -> Any:
        self.copies += 1
        return {"theta": self.updates}


@pytest.mark.parametrize(
    ("batches", "every", "published", "copies"),
    [
        (["good"] * 5, 1, 5, 1),  # of five pushes only the last counts
        (["good", "skipped"], 1, 1, 1),
        (["good"] * 5, 3, 4, 2),  # after the first and the fourth
        (["good"] * 2, 3, 1, 1),
        ([], 1, None, 0),
    ],
)
def test_the_newest_theta_that_was_due_is_published(
    batches: list[str], every: int, published: int | None, copies: int
) -> None:
    learner = Counting()
    improved = improve(batches, learner, every, Clock())  # type: ignore[arg-type]
    assert improved.batches == len(improved.updates) == len(batches)
    assert learner.copies == copies
    found = improved.published
    assert (None if found is None else (found.params["theta"], found.version)) == (
        None if published is None else (published, published)
    )


@pytest.mark.parametrize("every", [1, 2])
def test_what_came_before_a_divergence_is_kept(every: int) -> None:
    improved = improve(["good", "fatal", "good"], Counting(), every, Clock())  # type: ignore[arg-type]
    assert isinstance(improved.diverged, DivergenceError)
    assert len(improved.updates) == 1
    assert improved.batches == 2  # the one that raised is done, and is not trained again
    assert improved.published is not None
    assert improved.published.version == 1


def test_a_divergence_at_once_publishes_nothing() -> None:
    improved = improve(["fatal"], Counting(), 1, Clock())  # type: ignore[arg-type]
    assert improved.published is None
    assert improved.batches == 1
