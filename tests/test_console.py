"""The numbers that the console shows while a run trains."""

from __future__ import annotations

import io

import pytest

from gdi.index_space import make_index_space
from gdi.presets import make_config
from gdi.report import console
from gdi.report.console import LiveConsole, SpeedMeter, format_best_index, format_score
from gdi.types import EpisodeEnd
from run_folders import train_line


def test_a_scheduled_component_is_shown_as_it_is_now() -> None:
    """DQN at scale classic: ε falls from 1 to 0.04 over 8,000 steps, so it is 0.52 in the middle."""
    config = make_config("dqn", "CartPole-v1")
    space = make_index_space(config.index_space)
    assert format_best_index({"steps": 4_000}, config, space) == "ε 0.52"
    assert format_best_index({"steps": 50_000}, config, space) == "ε 0.04"


@pytest.mark.parametrize(("preset", "state"), [("random", "not learned"), ("gdi-i3", "still unknown")])
def test_an_exploration_setting_without_a_belief_is_said(preset: str, state: str) -> None:
    config = make_config(preset, "CartPole-v1")
    shown = format_best_index({"steps": 100}, config, make_index_space(config.index_space))
    assert shown == f"exploration setting: {state}"


def test_a_controller_without_a_belief_shows_the_mean_of_its_episodes() -> None:
    """A log line of a controller that learns has its belief, unless it has none to tell."""
    config = make_config("gdi-i3", "CartPole-v1")
    stream = io.StringIO()
    shown = LiveConsole(config, stream)
    for inverse_tau in (10.0, 20.0):
        shown.episode(100, EpisodeEnd(0, (inverse_tau, 4.0, 0.5), 1.0, 10, False))
    assert shown._exploration()[1] == "exploration setting: still unknown"
    shown.event(train_line(200))
    assert shown._exploration()[1] == "mean λ of the last 2 episodes: 1/τ1 15  1/τ2 4  ε 0.5"
    shown.event(train_line(300, {"inverse_tau_1": 10, "inverse_tau_2": 10, "epsilon": 1}))
    assert shown._exploration()[0] == "best λ so far"


@pytest.mark.parametrize(
    ("value", "text"),
    [(27000.0, "27000"), (1234567.0, "1234567"), (-131.2837, "-131.28"), (9.850000147, "9.85"), (0.0, "0")],
)
def test_a_score_keeps_its_digits(value: float, text: str) -> None:
    assert format_score(value) == text
    assert format_score(float("nan")) == "nan"


def test_an_evaluation_that_was_cut_says_so() -> None:
    stream = io.StringIO()
    line = {"kind": "evaluation", "steps": 100, "mean": 27e3, "median": 27e3, "min": 27e3, "max": 27e3}
    LiveConsole(make_config("gdi-i3", "CartPole-v1"), stream).event({**line, "cut_episodes": 3, "episodes": 32})
    assert "[27000, 27000]  3 of 32 episodes cut" in stream.getvalue()


def test_an_iteration_of_more_than_ten_seconds_has_a_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """600 steps in 20 seconds are 30 per second; later only the last seconds count."""
    now = [100.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    meter = SpeedMeter()
    now[0] = 120.0
    meter.update(600)
    assert meter.per_second == pytest.approx(30.0)
    now[0] = 125.0
    meter.update(1600)
    assert meter.per_second == pytest.approx(200.0)
