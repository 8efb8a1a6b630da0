from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gdi.config import Config, kinds
from gdi.presets import PRESETS, make_config
from gdi.theory.literature import (
    DEVIATIONS,
    LITERATURE,
    PAPER_CLASS,
    agent57_as_published,
    laser,
    ngu_as_published,
    pbt,
)
from gdi.theory.live import classify_config, controller_learns, describe_config, varying_axes
from gdi.theory.taxonomy import (
    Algorithm,
    Axis,
    GDIClass,
    bandit,
    classify,
    exploit_within_members,
    identity,
    is_identity,
    point_mass,
    shared,
    uniform,
    weighted_archive,
)

# The paper's section "Systematization of GDI", sentence by sentence, and its table of ablations.
SECTION = [
    (("DQN", "Rainbow", "PPO", "IMPALA"), "GDI-I^0 w/o E"),
    (("Ape-X", "R2D2"), "GDI-I^1 w/o E"),
    (("LASER",), "GDI-H^1 w/o E"),
    (("PBT (n = 2)",), "GDI-H^3"),  # "GDI-H^{n+1}, where n is the number of searched hyperparameters"
    (("NGU", "Agent57"), "GDI-I^2"),
    (("Go-Explore",), "GDI-H^1"),
]
TABLE = {
    "gdi-i3": "GDI-I^3",
    "gdi-h3": "GDI-H^3",
    "fixed": "GDI-I^0 w/o E",
    "random": "GDI-I^3 w/o E",
    "boltzmann": "GDI-I^1",
    "epsilon-greedy": "GDI-I^1",
}


def test_the_literature_equals_the_section() -> None:
    derived = {algorithm.name: str(classify(algorithm)) for algorithm in LITERATURE}
    assert derived == {name: said for names, said in SECTION for name in names}


@pytest.mark.parametrize("preset", TABLE)
def test_our_presets_equal_the_table(preset: str) -> None:
    for scale in ("paper", "classic"):
        assert str(classify_config(make_config(preset, scale=scale))) == TABLE[preset]


def test_every_preset_of_the_table_exists_and_the_copy_in_the_package_is_the_same() -> None:
    assert set(TABLE) <= set(PRESETS)
    assert {**{name: said for names, said in SECTION for name in names}, **TABLE} == PAPER_CLASS


@pytest.mark.parametrize("searched", [1, 2, 5])
def test_pbt_is_h_n_plus_1(searched: int) -> None:
    small = replace(pbt(searched, members=2))
    assert classify(small) == GDIClass(True, searched + 1, True)


def test_deviations_are_derived_and_differ_from_the_paper() -> None:
    assert str(classify(ngu_as_published())) == "GDI-I^1 w/o E"
    assert str(classify(agent57_as_published())) == "GDI-H^1"
    for deviation in DEVIATIONS:
        assert str(classify(deviation.published)) != PAPER_CLASS[deviation.published.name]
        assert deviation.reason
    assert any("no bandit" in deviation.reason for deviation in DEVIATIONS)


class TestTheDerivationLooksAtWhatItShould:
    base = Algorithm(
        "x", (Axis("a", (0.0, 1.0)), Axis("b", (0.0, 1.0, 2.0))), shared, uniform, bandit, ("", "", "", "")
    )

    def test_base(self) -> None:
        assert classify(self.base) == GDIClass(False, 2, True)

    def test_prior_decides_the_degree(self) -> None:
        assert classify(replace(self.base, prior=point_mass)).degree == 0
        # Support {(0,0), (0,1), (0,2)}: the first axis does not vary.
        assert classify(replace(self.base, prior=lambda n: np.array([1, 1, 1, 0, 0, 0]) / 3)).degree == 1

    def test_operator_decides_w_o_e(self) -> None:
        assert str(classify(replace(self.base, operator_e=identity))) == "GDI-I^2 w/o E"

    def test_families_decide_h(self) -> None:
        assert classify(replace(self.base, families=lambda point: frozenset({f"t{point[1]}"}))).heterogeneous

    def test_words_decide_nothing(self) -> None:
        assert classify(replace(self.base, describes=("all", "wrong", "words", "identity"))) == classify(self.base)

    def test_a_prior_that_is_none_is_refused(self) -> None:
        with pytest.raises(ValueError, match="probability"):
            classify(replace(self.base, prior=lambda n: np.ones(n)))
        with pytest.raises(ValueError, match="values"):
            Axis("a", (1.0, 1.0))


class TestOperators:
    @pytest.mark.parametrize("operator_e", [bandit, weighted_archive, exploit_within_members(2)])
    def test_they_move_and_stay_probabilities(self, operator_e: Any) -> None:
        prior = np.array([0.1, 0.2, 0.3, 0.4])
        assert not is_identity(operator_e, prior)
        after = operator_e(prior, np.array([1.0, 0.0, 2.0, 0.0]))
        assert after.sum() == pytest.approx(1.0)
        assert np.all(after >= 0)

    def test_an_operator_that_only_sees_losers_is_no_identity(self) -> None:
        def only_down(prior: Any, seen: Any) -> Any:
            return prior if seen.max() > 0 else prior[::-1]

        assert not is_identity(only_down, np.array([0.1, 0.9]))

    def test_pbt_keeps_the_share_of_each_member(self) -> None:
        prior = np.array([[0.1, 0.2], [0.3, 0.4]])  # hyperparameter x member
        after = exploit_within_members(2)(prior.ravel(), np.array([5.0, 0.0, 0.0, 5.0])).reshape(2, 2)
        np.testing.assert_allclose(after.sum(axis=0), prior.sum(axis=0))
        assert after[0, 0] > prior[0, 0]

    def test_laser_with_one_learner_would_be_i_0(self) -> None:
        assert str(classify(laser(learners=1))) == "GDI-I^0 w/o E"


class TestLiveConfigs:
    """Change the config, and the class follows; nothing is looked up by name."""

    base = make_config("gdi-i3", scale="paper")

    def test_holding_an_axis_fixed_lowers_the_degree(self) -> None:
        space = self.base.index_space
        two = replace(self.base, index_space=replace(space, inverse_tau_2=replace(space.inverse_tau_2, search=False)))
        assert str(classify_config(two)) == "GDI-I^2"
        assert varying_axes(two) == ("inverse_tau_1", "epsilon")

    @pytest.mark.parametrize(
        ("kind", "said"),
        [("multiplicative-weights", "GDI-I^3"), ("uniform", "GDI-I^3 w/o E"), ("fixed", "GDI-I^0 w/o E")],
    )
    def test_the_controller_decides_e(self, kind: Any, said: str) -> None:
        assert str(classify_config(with_controller(self.base, kind))) == said

    def test_the_name_of_the_preset_does_not_matter(self) -> None:
        assert str(classify_config(replace(self.base, preset="fixed"))) == "GDI-I^3"

    def test_two_families_without_a_searched_epsilon_are_not_heterogeneous(self) -> None:
        h3 = make_config("gdi-h3", scale="paper")
        space = h3.index_space
        pinned = replace(h3, index_space=replace(space, epsilon=replace(space.epsilon, search=False, fixed_value=0.5)))
        assert str(classify_config(h3)) == "GDI-H^3"
        assert str(classify_config(pinned)) == "GDI-I^2"

    def test_words_come_from_the_config(self) -> None:
        assert describe_config(self.base) == ("1/τ1 x 1/τ2 x ε", "one θ", "uniform", "tile-bandit")
        assert describe_config(with_controller(self.base, "fixed"))[2:] == ("point", "identity")

    def test_controller_learns_for_any_seed(self) -> None:
        for seed in range(3):
            assert controller_learns(self.base, seed)
            assert not controller_learns(with_controller(self.base, "uniform"), seed)


def with_controller(config: Config, kind: Any) -> Config:
    return replace(config, controller=kinds("controller")[kind]())
