"""The figures: files, labels that can be read, one color per agent; and a page that works without a network."""

from __future__ import annotations

import itertools
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from browsers import open_pages
from gdi.scores import Agent, Bootstrap, choose_agents, judge, load_reference, metrics, published_agents
from gdi.scores.figures import (
    AXES,
    benchmark_figure,
    histogram_figure,
    hwrb_figure,
    profile,
    profile_figure,
    thresholds_for,
)
from gdi.scores.gallery import draw_all, save
from gdi.scores.report import Report
from gdi.scores.style import STYLES, YOURS, styles_for


@pytest.fixture(scope="module")
def everybody() -> Report:
    return judge(choose_agents("all"))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page for an agent with seeds and an awkward name, beside all published agents."""
    noise = np.random.default_rng(7).normal(1.0, 0.1, (3, 57))
    mine = Agent("</script><b>mine", published_agents()["gdi_h3"].scores * noise, 2e8)
    (path,) = draw_all(
        tmp_path_factory.mktemp("page"), [mine], choose_agents("all"), bootstrap=Bootstrap(100), only="page"
    )
    return path


def labels(figure: Figure) -> list[list[Annotation]]:
    figure.draw_without_rendering()
    return [[t for t in axes.texts if isinstance(t, Annotation)] for axes in figure.axes]


@pytest.mark.parametrize(("criterion", "axis"), [("hns", "game_time"), ("saber", "scale"), ("hwrns", "efficiency")])
def test_labels_name_every_agent_and_do_not_overlap(everybody: Report, criterion: str, axis: str) -> None:
    figure = benchmark_figure(everybody.mine, STYLES, criterion, axis)
    assert len(figure.axes) == 2
    for axes, texts in zip(figure.axes, labels(figure), strict=True):
        assert sorted(t.get_text() for t in texts) == sorted(s.agent.name for s in everybody.mine)
        boxes = [Annotation.get_window_extent(t) for t in texts]
        frame = axes.get_window_extent()
        for text, box in zip(texts, boxes, strict=True):
            assert frame.x0 <= box.x0 and box.x1 <= frame.x1, text.get_text()  # noqa: PT018
            assert frame.y0 <= box.y0 and box.y1 <= frame.y1, text.get_text()  # noqa: PT018
        # A label's extent includes its arrow patch, which it does not have: plain rectangles are compared.
        for (a, x), (b, y) in itertools.combinations(zip(texts, boxes, strict=True), 2):
            clear = x.x1 <= y.x0 or y.x1 <= x.x0 or x.y1 <= y.y0 or y.y1 <= x.y0
            assert clear, (a.get_text(), b.get_text())


def test_points_are_where_the_numbers_are(everybody: Report) -> None:
    figure = benchmark_figure(everybody.mine, STYLES, "hns", "scale")
    points = {(float(line.get_xdata()[0]), round(float(line.get_ydata()[0]), 2)) for line in figure.axes[0].lines}
    assert (1e11, 4763.69) in points  # Agent57, as printed
    assert (2e8, 9620.93) in points


def test_hwrb_without_a_breakthrough_has_no_efficiency(everybody: Report) -> None:
    by_axis = dict(zip(AXES, labels(hwrb_figure(everybody.mine, STYLES)), strict=True))
    names = {axis: {t.get_text() for t in texts} for axis, texts in by_axis.items()}
    assert len(names["game_time"]) == len(names["scale"]) == 13
    assert names["game_time"] - names["efficiency"] == {"SimPLe"}


def test_agents_without_frames_are_not_drawn_against_frames() -> None:
    report = judge([Agent.from_dict("mine", {"pong": 20.0})], choose_agents("agent57"))
    figure = benchmark_figure((*report.mine, *report.others), styles_for(("Agent57",), ("mine",)), "hns", "scale")
    assert [[t.get_text() for t in texts] for texts in labels(figure)] == [["Agent57"], ["Agent57"]]


def test_histogram_has_a_bar_per_game_and_error_bars_only_with_seeds(five_seeds: Agent) -> None:
    reference, style = load_reference(), styles_for((), ("five",))["five"]
    figure = histogram_figure(five_seeds, style, "hns", reference)
    axes = figure.axes[0]
    widths = sorted(patch.get_width() for patch in axes.patches)
    expected = sorted(100 * metrics.game_means(metrics.hns(five_seeds.scores, reference)))
    np.testing.assert_allclose(widths, expected)
    assert len(axes.get_yticklabels()) == 57
    assert len(axes.collections) == 1
    segments = axes.collections[0].get_segments()
    top = max(segments, key=lambda s: s[:, 0].mean())
    jamesbond = 100 * metrics.hns(five_seeds.scores, reference)[:, 27]
    assert top[1, 0] - top[0, 0] == pytest.approx(2 * jamesbond.std(ddof=1))
    single = histogram_figure(published_agents()["simple"], STYLES["SimPLe"], "saber", reference)
    assert len(single.axes[0].patches) == 36
    assert not single.axes[0].collections


def test_profiles_have_a_band_only_with_seeds(five_seeds: Agent) -> None:
    reference = load_reference()
    mine = profile(five_seeds, "hns", reference, Bootstrap(100))
    assert mine.band is not None
    low, high = mine.band
    assert (low <= mine.fraction + 1e-12).all()
    assert (mine.fraction <= high + 1e-12).all()
    assert (high - low).max() > 0.005
    other = profile(published_agents()["agent57"], "hns", reference, Bootstrap(100))
    assert other.band is None
    figure = profile_figure({"five": mine, "Agent57": other}, styles_for(("Agent57",), ("five",)), "hns")
    assert len(figure.axes[0].collections) == 1
    # Agent57 surpasses the average human in all 57 games, and only there begins to fall.
    assert other.fraction[np.searchsorted(thresholds_for("hns"), 99.0)] == 1
    assert other.fraction[-1] == 0


def test_every_agent_looks_different_also_to_the_color_blind() -> None:
    every = styles_for(tuple(STYLES), ("mine", "yours", "theirs"))
    looks = {(style.color, style.family.marker) for style in every.values()}
    assert len(looks) == len(every) == 18
    assert {agent.name for agent in published_agents(ablations=True).values()} == set(STYLES)
    for a, b in itertools.combinations(every, 2):
        if every[a].family is every[b].family:
            for matrix in (_DEUTERANOPIA, _PROTANOPIA):
                assert _distance(every[a].color, every[b].color, matrix) > 0.12, (a, b)


# Viénot, Brettel and Mollon 1999: linear RGB as two kinds of color-blind people see it.
_DEUTERANOPIA = np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]])
_PROTANOPIA = np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]])


def _distance(a: str, b: str, matrix: np.ndarray) -> float:
    def seen(color: str) -> np.ndarray:
        rgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        return np.clip(matrix @ rgb**2.2, 0, 1) ** (1 / 2.2)

    return float(np.linalg.norm(seen(a) - seen(b)))


def test_static_files_are_written(tmp_path: Path) -> None:
    written = draw_all(tmp_path, (), choose_agents("gdi_h3"), only="static")
    # nine of mean and median, HWRB, three histograms of GDI-H3, three profiles; each as PNG and SVG
    assert len({path.name for path in written}) == 2 * (9 + 1 + 3 + 3)
    assert (tmp_path / "games-hwrns-gdi-h3.svg") in written
    for path in written:
        head = path.read_bytes()[:200]
        assert head.startswith(b"\x89PNG") if path.suffix == ".png" else b"<?xml" in head


def test_the_same_scores_give_the_same_bytes(tmp_path: Path, everybody: Report) -> None:
    first, second = (
        [path.read_bytes() for path in save(benchmark_figure(everybody.mine, STYLES, "hns", "scale"), tmp_path, name)]
        for name in ("a", "b")
    )
    assert first == second


# ---------------------------------------------------------------------------------------------------------- the page


class _References(HTMLParser):
    """Collects everything a browser would load."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href", "srcset", "data", "action", "poster"):
                self.loaded.append(value or "")


def test_page_refers_to_nothing_outside_itself(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    references = _References()
    references.feed(text)
    assert references.loaded == ["data:,"]  # an empty icon, so that no browser asks for one
    assert "@import" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    own = text[text.rindex('<script id="figures"') :]
    assert not re.search(r"https?://|fetch\(|XMLHttpRequest|import\(", own)
    assert 4e6 < len(text) < 8e6  # Plotly's script is inside


def test_page_has_every_figure_of_every_menu(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    # An agent's name cannot end the script that holds the data.
    assert "</script><b>mine" not in text
    assert text.count('data-figure="') == 4
    assert text.count("<select>") == 3 + 1 + 1 + 2


# Every figure of every menu is drawn once. What was found is written into the page's text.
PROBE = """
<pre id="probe"></pre>
<script>
const problems = [];
window.addEventListener("error", event => problems.push(event.message));
let drawn = 0;
for (const menu of document.querySelectorAll("select")) for (const option of menu.options) {
  menu.value = option.value;
  menu.dispatchEvent(new Event("change"));
  drawn += 1;
}
const table = document.querySelector("#standing table");
table.querySelectorAll("th")[1].click();
const column = [...table.tBodies[0].rows].map(row => +row.children[1].textContent);
const sorted = column.every((value, i) => i === 0 || column[i - 1] >= value);
const plots = document.querySelectorAll(".plot .main-svg").length;
document.getElementById("probe").textContent = "probe:" + JSON.stringify({drawn, sorted, problems, plots});
</script>"""
BAD = """<!doctype html><body data-ready="yes"><h1>bad</h1><img src="https://picture.invalid/x.png">
<script>undefinedFunction()</script>"""


@pytest.fixture(scope="module")
def opened(page: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return what happened in a browser to the page, and to a bad one."""
    folder = tmp_path_factory.mktemp("opened")
    copy, bad = folder / "page.html", folder / "bad.html"
    copy.write_text(page.read_text(encoding="utf-8").replace("</body>", f"{PROBE}</body>"), encoding="utf-8")
    bad.write_text(BAD)
    return open_pages([{"url": path.as_uri(), "walk": False} for path in (copy, bad)])


def test_page_opens_without_network_and_without_console_errors(opened: list[dict[str, Any]]) -> None:
    found = opened[0]
    assert found["errors"] == []
    assert found["requests"] == []
    assert found["ready"] is not None
    probe = json.loads(found["text"].split("probe:")[1].splitlines()[0])
    assert probe["problems"] == []
    assert probe["sorted"]
    assert probe["plots"] >= 4
    assert probe["drawn"] == (3 + 3 + 3) + 3 + 3 + (14 + 3)


def test_errors_and_requests_are_really_watched(opened: list[dict[str, Any]]) -> None:
    """The negative control of the test above: a page with an error and a request is caught."""
    assert any("undefinedFunction" in error for error in opened[1]["errors"])
    assert opened[1]["requests"] == ["https://picture.invalid/x.png"]


def test_your_agents_stand_out() -> None:
    styles = styles_for(("Agent57", "GDI-H3"), ("a", "b"))
    assert styles["a"].prominent
    assert styles["GDI-H3"].prominent
    assert not styles["Agent57"].prominent
    assert styles["a"].family is YOURS
    assert styles["a"].color != styles["b"].color
