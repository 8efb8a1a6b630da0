"""The numbers that the console shows while a run trains."""

from __future__ import annotations

import pytest

from gdi.index_space import make_index_space
from gdi.presets import make_config
from gdi.report import console
from gdi.report.console import SpeedMeter, format_best_index


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
