"""What a user's own class says about itself: a misspelled word is an error, and silence means the default."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from gdi.config import AxisConfig, GDISpace, controller_traits, learner_traits, space_traits, validate
from gdi.config.traits import ControllerTraits, LearnerTraits, SpaceTraits
from gdi.controller import Controller
from gdi.controller.static import FixedController
from gdi.errors import UserError
from gdi.index_space import IndexSpace
from helpers import tiny_config


@dataclass(frozen=True)
class Silent:
    low: float = 0.0

    def build(self, space: IndexSpace, rng: np.random.Generator) -> Controller:
        return FixedController(space)


@dataclass(frozen=True)
class Windows(Silent):
    kind: ClassVar[str] = "windows"
    redraw: ClassVar[str] = "window"
    searches = True
    labels_of_mine = ("a", "b")


@dataclass(frozen=True)
class Misspelled(Silent):
    redraws: ClassVar[str] = "window"


@dataclass(frozen=True)
class Unknown(Silent):
    redraw: ClassVar[str] = "step"


@dataclass(frozen=True)
class Space(GDISpace):
    limit: ClassVar[dict[str, float]] = {"epsilon": 0.5}
    epsilon: AxisConfig = AxisConfig(high=1.0, block_width=0.1)


def test_what_a_class_does_not_say_is_the_default() -> None:
    assert controller_traits(Silent()) == ControllerTraits()
    assert learner_traits(Silent()) == LearnerTraits()
    assert space_traits(Silent()) == SpaceTraits()
    traits = controller_traits(Windows())
    assert (traits.redraw, traits.searches, traits.per_environment) == ("window", True, False)


@pytest.mark.parametrize("controller", [Silent(), Windows()])
def test_classes_of_today_stay_valid(controller: Any) -> None:
    validate(replace(tiny_config(), controller=controller))


@pytest.mark.parametrize(
    ("section", "own", "message"),
    [
        ("controller", Misspelled(), "Misspelled has the unknown attribute redraws: rename it to redraw."),
        ("controller", Unknown(), "Unknown.redraw is 'step': set it to 'episode' or 'window'."),
        ("index_space", Space(), "Space has the unknown attribute limit: rename it to limits."),
    ],
)
def test_a_slip_in_a_trait_is_one_line(section: str, own: Any, message: str) -> None:
    with pytest.raises(UserError) as told:
        validate(replace(tiny_config(), **{section: own}))
    assert str(told.value) == message
