"""The strip under a video: λ in the controller's distributions, entropy and value, read back from the pixels."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest

import gdi
from gdi.agent import Agent
from gdi.evaluation.strip import (
    CELL_PIXELS,
    EDGE,
    GREEN,
    HEIGHT,
    ORANGE,
    PURPLE,
    SKY,
    STEPS_SHOWN,
    TRACE_PIXELS,
    Component,
    Outlook,
    Strip,
    draw_strip,
    value_range,
)
from gdi.types import Array
from helpers import change, error_line, tiny_config

WIDTH = 480


def pixels(area: Array, color: tuple[int, int, int]) -> Array:
    """The rows and columns of the pixels of about this color, [n, 2]. Lines have soft edges."""
    return np.argwhere((np.abs(area.astype(int) - color) < 60).all(-1))


def outlook(step: int = 5, *, components: tuple[Component, ...] = (), entropy: float = 0.5) -> Outlook:
    return Outlook(step, components, entropy, math.log(6), 2.0)


def test_bars_are_the_probabilities_and_the_mark_is_lambda() -> None:
    component = Component("x", 3.0, 0.75, (0.0, 4.0), (0.1, 0.4, 0.2, 0.3))
    area = draw_strip(outlook(components=(component,)), [], WIDTH)[:CELL_PIXELS]
    bars = pixels(area, SKY)
    edges = np.linspace(EDGE, WIDTH - EDGE, 5)
    inside = [bars[(bars[:, 1] > a + 2) & (bars[:, 1] < b - 4), 0] for a, b in pairwise(edges)]
    heights = [len(np.unique(rows)) - 1 for rows in inside]
    highest = max(heights)
    assert [round(height / highest, 1) for height in heights] == [0.2, 1.0, 0.5, 0.8]  # 0.1, 0.4, 0.2, 0.3 of 0.4
    mark = pixels(area, ORANGE)
    assert abs(mark[:, 1].mean() - (EDGE + 0.75 * (WIDTH - 2 * EDGE))) < 1


def test_each_component_has_its_part_of_the_width() -> None:
    searched = Component("x", 1.0, 0.5, (0.0, 2.0), (0.5, 0.5))
    area = draw_strip(outlook(components=(searched, Component("y", 1.0), searched)), [], WIDTH)[:CELL_PIXELS]
    columns = np.unique(pixels(area, SKY)[:, 1])
    assert ((columns < 160) | (columns >= 320)).all()  # the middle one is not searched, so it has no bars
    assert len(pixels(area[:, 160:320], ORANGE)) == 0


def test_curves_are_at_the_height_of_their_values() -> None:
    curves = [(math.log(6) / 2, 1.0)] * 50 + [(math.log(6), 3.0)] * 50
    drawn = draw_strip(outlook(), curves, WIDTH)[CELL_PIXELS:]
    entropy, value = drawn[:TRACE_PIXELS], drawn[TRACE_PIXELS : 2 * TRACE_PIXELS]
    for area, color in ((entropy, GREEN), (value, PURPLE)):
        found = pixels(area, color)
        below = found[found[:, 0] > 24]  # under the text
        assert below[:, 1].max() <= EDGE + (WIDTH - 2 * EDGE) * 100 / STEPS_SHOWN + 1
    middle = (24 + TRACE_PIXELS - EDGE) / 2
    early = pixels(entropy[:, : EDGE + 60], GREEN)
    assert abs(np.median(early[early[:, 0] > 24][:, 0]) - middle) <= 1  # half of the highest entropy
    assert value_range(np.array([1.0, 3.0, np.nan])) == (1.0, 3.0)
    assert value_range(np.array([1.0, 1.2])) == pytest.approx((0.6, 1.6))
    assert value_range(np.array([np.nan])) == (0.0, 1.0)


def test_the_strip_leaves_the_frame_and_starts_anew_with_each_episode() -> None:
    seen = [0, 1, 2, 2, 0, 1]
    steps = iter(seen)
    strip = Strip(lambda: outlook(step := next(steps), entropy=math.nan if step == 0 else 0.5))
    frame = np.full((64, WIDTH, 3), 7, np.uint8)
    lengths = []
    for _ in seen:
        shown = strip.under(frame)
        assert shown.shape == (64 + HEIGHT, WIDTH, 3)
        assert (shown[:64] == 7).all()
        lengths.append(len(strip._curves))
    assert lengths == [0, 1, 2, 2, 0, 1]  # Atari shows several frames of one step


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Agent]:
    folder = tmp_path_factory.mktemp("runs")
    made = {}
    for preset in ("gdi-h3", "fixed", "dqn", "ppo"):
        config = tiny_config(preset=preset, steps=60) if preset in ("gdi-h3", "fixed") else small(preset)
        gdi.train(replace(config, env=replace(config.env, max_episode_steps=8)), folder / preset)
        made[preset] = gdi.load(folder / preset)
    return made


def small(preset: str) -> gdi.Config:
    config = gdi.make_config(preset, "MinAtar/Breakout-v0", steps=640)
    if preset == "dqn":
        config = change(config, learn_start_transitions=100)
    return replace(change(config, hidden_units=16), evaluation=replace(config.evaluation, episodes=1))


@pytest.mark.parametrize("preset", ["gdi-h3", "fixed", "dqn", "ppo"])
def test_the_outlook_is_that_of_the_step(agents: dict[str, Agent], preset: str) -> None:
    agent = agents[preset]
    agent.reset()
    assert math.isnan(agent.outlook().entropy)
    agent.act(np.zeros(agent.spec.frame_shape, bool))
    now = agent.outlook()
    assert now.step == 1
    assert now.highest_entropy == math.log(6)
    assert 0 <= now.entropy <= now.highest_entropy + 1e-6
    assert math.isfinite(now.value)
    assert {c.label: c.value for c in now.components} == dict(zip(agent.space.labels, agent.index, strict=True))
    for component in now.components:
        searched = preset == "gdi-h3"
        assert (len(component.probability) > 0) == searched
        if searched:
            assert sum(component.probability) == pytest.approx(1)
            assert 0 <= component.place <= 1


def test_a_video_with_a_strip_is_higher_by_the_strip(agents: dict[str, Agent], tmp_path: Path) -> None:
    agent = agents["gdi-h3"]
    for strip in (False, True):
        agent.record(tmp_path / f"{strip}.mp4", strip=strip)
    sizes = []
    for strip in (False, True):
        reader = imageio_ffmpeg.read_frames(str(tmp_path / f"{strip}.mp4"))
        sizes.append(next(reader)["size"])
        reader.close()
    assert sizes[1] == (sizes[0][0], sizes[0][1] + HEIGHT)


def test_a_strip_needs_a_video(capsys: pytest.CaptureFixture[str]) -> None:
    assert error_line(["evaluate", "runs/x", "--strip"], capsys) == "gdi: error: --strip needs a video: add --video.\n"
