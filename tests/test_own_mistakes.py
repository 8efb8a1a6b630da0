"""Mistakes in a user's own controller or algorithm are one line that names it, before anything wrong is played."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import gdi
from gdi.config import Config, validate
from gdi.controller import make_controller
from gdi.errors import UserError
from gdi.runtime.local import build
from helpers import tiny_config

GOOD = (1.0, 2.0, 0.5)
Proposals = Callable[[list[int]], Any]


class Mine:
    """A controller whose proposals a test decides."""

    slots = 1

    def __init__(self, proposals: Proposals, best: Any) -> None:
        self._proposals, self._best = proposals, best

    def propose(self, envs: list[int]) -> Any:
        return self._proposals(envs)

    def propose_best(self, env: int, rng: np.random.Generator) -> Any:
        return self._best

    def observe(self, episodes: Any, transitions: int) -> None: ...

    def belief(self) -> list[Any]:
        return []

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: Any) -> None: ...


class Deaf:
    """A controller without ``observe``."""

    slots = 1
    propose = Mine.propose
    propose_best = Mine.propose_best
    belief = Mine.belief
    state_dict = Mine.state_dict
    load_state_dict = Mine.load_state_dict


def own(proposals: Proposals = lambda envs: [GOOD for _ in envs], best: Any = GOOD, made: Any = None) -> Config:
    @dataclass(frozen=True)
    class MineConfig:
        def build(self, space: Any, rng: np.random.Generator) -> Any:
            return made or Mine(proposals, best)

    config = tiny_config("Toy/Chain-v0", steps=400)
    return replace(config, controller=MineConfig(), env=replace(config.env, num_envs=4))


@pytest.mark.parametrize("redraw", ["episode", "window"])
@pytest.mark.parametrize(
    ("proposals", "message"),
    [
        (lambda envs: [(0.5,) for _ in envs], "propose gave a wrong λ: .* has 3 numbers, not 1"),
        (lambda envs: [GOOD], "propose returned 1 λ for 4 environments"),
        (lambda envs: [(1.0, 2.0, 1.5) for _ in envs], r"propose gave a wrong λ: ε must be in \[0, 1\], not 1.5"),
        (
            lambda envs: [(1.0, float("nan"), 0.5) for _ in envs],
            "propose gave a wrong λ: 1/τ2 must be 0 or more, not nan",
        ),
        (lambda envs: [0.5 for _ in envs], "propose gave 0.5 as a λ: give a tuple of numbers"),
        (lambda envs: None, "propose returned NoneType for 4 environments"),
    ],
)
def test_a_wrong_proposal_names_the_controller(redraw: str, proposals: Proposals, message: str) -> None:
    config = own(proposals)
    type(config.controller).redraw = redraw  # type: ignore[union-attr]
    system = build(validate(config))
    try:
        with pytest.raises(UserError, match=f"controller Mine: {message}") as told:
            system.parts.act(200)
        assert "\n" not in str(told.value)
    finally:
        system.close()


def test_a_wrong_choice_for_evaluation_names_the_controller(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"controller Mine: propose_best gave a wrong λ: .* has 3 numbers, not 1"):
        gdi.train(own(best=(1.0,)), tmp_path / "run")


def test_proposals_pass_unchanged_in_any_form() -> None:
    rng = np.random.default_rng(0)
    past_by_rounding = (0.1, 2.0, 1.0000000000000002)
    for proposals in (lambda envs: np.tile(GOOD, (len(envs), 1)), lambda envs: [list(GOOD)] * len(envs)):
        assert make_controller(own(proposals)).propose([0, 1]) == [GOOD, GOOD]
    assert make_controller(own(best=past_by_rounding)).propose_best(0, rng) == past_by_rounding


def test_a_controller_without_a_method_writes_no_folder(tmp_path: Path) -> None:
    told = r"controller Deaf has no observe\(episodes, transitions\): add it to the controller that MineConfig.build"
    with pytest.raises(UserError, match=told):
        gdi.train(own(made=Deaf()), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@dataclass(frozen=True)
class Empty:
    knobs: ClassVar[tuple[str, ...]] = ("inverse_tau_1", "inverse_tau_2", "epsilon")


@dataclass(frozen=True)
class Knobless:
    def build(self, config: Config) -> Any: ...


@pytest.mark.parametrize(
    ("section", "kind", "message"),
    [
        ("controller", Empty(), r"--controller is Empty, which has no build\(space, rng\)"),
        ("learner", Empty(), r"--learner is Empty, which has no build\(config\)"),
        ("learner", Knobless(), "--learner is Knobless, which has no knobs"),
    ],
)
def test_a_config_that_builds_nothing_is_refused(section: str, kind: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        validate(replace(tiny_config(), **{section: kind}))
