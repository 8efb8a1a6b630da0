"""gdi watch: what the terminal shows of a run's files, and what the server answers, and to whom."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import gdi
from browsers import open_pages
from gdi.cli.main import main
from gdi.errors import UserError
from gdi.index_space import make_index_space
from gdi.report import live
from gdi.report.console import LiveConsole
from gdi.report.console_strips import MOST_LINES, ControlView
from gdi.report.live import LiveReports, make_server
from gdi.report.runs import read_run
from gdi.report.strips import (
    BARS,
    SURENESS,
    bars,
    belief_strip,
    curve_lines,
    fitted,
    played_strip,
    pooled,
    strips_table,
    sureness_color,
)
from gdi.report.terminal import dashboard, run_strips, runs_table
from gdi.types import EpisodeEnd
from helpers import error_line
from run_folders import append, hand_config, train_line, write_run

MOVES = [train_line(1000 * n, {"inverse_tau_1": 5 * n, "inverse_tau_2": 10, "epsilon": 9 - n}) for n in range(1, 10)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run", MOVES)


# Text


def test_a_bar_is_as_high_as_its_place() -> None:
    places = np.array([0.0, 0.124, 0.125, 0.5, 0.999, 1.0, np.nan])
    assert bars(places) == BARS[0] + BARS[0] + BARS[1] + BARS[4] + BARS[7] + BARS[7] + " "


def test_a_strip_is_stretched_or_cut_to_the_width_and_ends_with_the_newest() -> None:
    assert fitted(np.arange(3.0), 6).tolist() == [0, 0, 1, 1, 2, 2]
    assert fitted(np.arange(6.0), 3).tolist() == [1, 3, 5]


def test_pooled_probabilities_keep_their_sum() -> None:
    assert pooled(np.array([0.1, 0.2, 0.3, 0.4]), 2).tolist() == pytest.approx([0.1 + 0.2, 0.3 + 0.4])


def test_the_strip_of_an_axis_is_its_best_block_over_time(folder: Path) -> None:
    run = read_run(folder)
    axis = run.settings.axes[0]
    belief = run.belief(axis.name)
    assert belief is not None
    strip = belief_strip(axis, "1/τ1", belief)
    np.testing.assert_allclose(strip.places, [5 * n / 49 for n in range(1, 10)])
    sure = (0.5 * 50 - 1) / 49  # one half in one of 50 blocks; 1 / 50 would be no preference
    np.testing.assert_allclose(strip.sureness, sure)
    assert strip.now == f"45.5, sure {sure:.0%}"  # the middle of block 45 of width 1


def test_the_color_follows_the_root_of_the_sureness() -> None:
    # Five colors: the roots of 0.04, 0.16, 0.36 and 0.64 are 0.2, 0.4, 0.6 and 0.8.
    assert [sureness_color(sure) for sure in (0.0, 0.05, 0.17, 0.37, 0.65)] == list(SURENESS)
    assert sureness_color(1.0) == SURENESS[-1]


def test_a_component_that_follows_a_rule_has_a_strip_and_a_fixed_one_has_none() -> None:
    strip = played_strip("ε", np.array([np.nan, 1.0, 0.5, 0.0]))
    assert strip is not None
    assert strip.now == "now 0, range 0 to 1"
    assert bars(strip.places) == " █" + BARS[4] + "▁"
    assert played_strip("ε", np.array([0.1, np.nan, 0.1])) is None


def test_a_curve_has_the_mean_of_each_column() -> None:
    steps, values = np.array([1.0, 2, 5, 10]), np.array([0.0, 2, 3, 5])
    # Two columns of five steps: means 1 and (3 + 5) / 2 = 4. The lowest is one eighth high, the highest is full.
    assert curve_lines(steps, values, 2, 2) == [" █", "▁█"]


def test_a_column_without_an_episode_repeats_the_one_before() -> None:
    assert curve_lines(np.array([1.0, 8]), np.array([5.0, 0]), 4, 1) == ["███▁"]


def shown(content: Any, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    console.print(content)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_the_dashboard_says_what_e_did(folder: Path) -> None:
    text = shown(dashboard(read_run(folder), 80, 40))
    assert "gdi-i3  MinAtar/Breakout-v0  seed 3" in text
    assert "stopped at 9,000 of 10,000 steps" in text
    assert "E moved 1/τ1 from 10.5 to 40.5" in text  # medians of blocks 5, 10, 15 and of 35, 40, 45
    assert "training return, 50.00 over the last 9 of 9 episodes" in text  # the mean of 10, 20, ..., 90
    assert "no evaluation yet" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_screen_names_the_controller_and_shows_a_whole_range(folder: Path) -> None:
    text = shown(dashboard(read_run(folder), 80, 40))
    assert "what the controller (E) did" in text
    strip = played_strip("ε", np.array([0.472, 0.387, 0.555]))
    assert strip is not None
    assert "now 0.555, range 0.387 to 0.555" in shown(strips_table([strip], 80))


def test_the_progress_is_that_of_the_newest_checkpoint(folder: Path) -> None:
    (folder / "checkpoints" / "step-000000009500-update-000000095").mkdir()
    text = shown(dashboard(read_run(folder), 80, 40))
    assert "stopped at 9,500 of 10,000 steps" in text
    assert "9,500" in shown(runs_table([read_run(folder)], folder.parent, 80))


def test_an_agent_with_an_own_controller_is_named_after_it(folder: Path) -> None:
    tree = json.loads((folder / "config.json").read_text())
    tree["controller"] = {"kind": "my_module:EliteConfig", "memory": 64}
    (folder / "config.json").write_text(json.dumps(tree))
    assert "gdi-i3, controller EliteConfig  MinAtar/Breakout-v0" in shown(dashboard(read_run(folder), 80, 40))


def test_a_large_score_has_all_its_digits(folder: Path) -> None:
    line = {**train_line(9000), "kind": "evaluation", "mean": 27000.0, "median": 27000, "min": 26999, "max": 27000.5}
    append(folder, json.dumps(line) + "\n")
    assert "26999 to 27000.50" in shown(dashboard(read_run(folder), 80, 40))


def test_an_evaluation_and_a_notice_are_shown(folder: Path) -> None:
    line = {**train_line(9000), "kind": "evaluation", "mean": 4.5, "median": 4, "min": 0, "max": 9}
    append(folder, json.dumps(line) + "\n")
    (folder / "notices.log").write_text("2026-01-01 first\n2026-01-02 an actor was lost\n")
    text = shown(dashboard(read_run(folder), 80, 40))
    assert "9,000  4.50    4.00             0 to 9" in text
    assert "an actor was lost" in text
    assert "first" not in text


@pytest.mark.parametrize("preset", ["gdi-h3", "fixed", "random", "boltzmann", "dqn", "ppo", "impala"])
@pytest.mark.parametrize("lines", [0, 1, 12])
def test_every_preset_can_be_watched(tmp_path: Path, preset: str, lines: int) -> None:
    log = [train_line(1000 * n) for n in range(1, lines + 1)]
    run = read_run(write_run(tmp_path / "run", log, hand_config(preset)))
    for width in (40, 80, 200):
        assert max(map(len, shown(dashboard(run, width, 30), width).splitlines())) <= width


def test_a_schedule_is_drawn_from_the_episodes(folder: Path) -> None:
    lines = [json.dumps(train_line(1000 * n)) + "\n" for n in range(1, 10)]
    (folder / "metrics.jsonl").write_text("".join(lines))
    rows = [f"{1000 * n - 1},0,1,2,{1 - n / 10},5,10,0" for n in range(1, 10)]
    header = (folder / "episodes.csv").read_text().splitlines()[0]
    (folder / "episodes.csv").write_text("\n".join([header, *rows]) + "\n")
    (strip,) = run_strips(read_run(folder))
    assert strip.label == "ε"
    assert strip.now == "now 0.1, range 0.1 to 0.9"


def test_the_list_cuts_long_names_and_no_number(tmp_path: Path) -> None:
    for name in ("a", "b" * 90):
        write_run(tmp_path / name, MOVES)
    runs = [read_run(tmp_path / name) for name in ("a", "b" * 90)]
    first, second = shown(runs_table(runs, tmp_path, 80)).splitlines()[1:3]
    assert first.split() == ["a", "gdi-i3", "MinAtar/Breakout-v0", "stopped", "9,000", "50.00"]
    assert second.startswith("bbbb")
    assert "…" in second
    assert second.endswith("9,000   50.00")


def test_the_console_of_a_run_draws_the_strips_that_its_files_draw(folder: Path) -> None:
    config = hand_config()
    view = ControlView(make_index_space(config.index_space))
    for line in MOVES:
        view.episode(EpisodeEnd(0, (1.0, 2.0, 0.5), line["steps"] / 100, 10, False))
        view.line(line)
    found, wanted = view._strips, run_strips(read_run(folder))
    assert [strip.label for strip in found] == [strip.label for strip in wanted] == ["1/τ1", "1/τ2", "ε"]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one.places, other.places)
    resumed = ControlView(make_index_space(config.index_space))
    resumed.continue_from(folder)
    assert [strip.now for strip in resumed._strips] == [strip.now for strip in wanted]


def test_the_console_thins_its_lines_and_keeps_the_newest() -> None:
    view = ControlView(make_index_space(hand_config().index_space))
    for n in range(1, 2 * MOST_LINES + 8):
        view._lines.append(train_line(n, {"epsilon": n % 10}))
        view._means.append(np.zeros(3))
    view.line(train_line(5000, {"epsilon": 7}))
    assert len(view._lines) <= MOST_LINES
    assert view._lines[-1]["steps"] == 5000
    assert view._strips[0].now.startswith("0.75")


def test_the_screen_of_gdi_train_has_the_strips() -> None:
    console = LiveConsole(hand_config(), io.StringIO())
    for line in MOVES:
        console.event(line)
    text = shown(console._screen(), 100)
    assert "sure 49%" in text
    assert text.index("1/τ1") < text.index("speed")


# The command


def test_a_run_that_is_not_going_is_shown_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(folder)]) == 0
    assert "E moved 1/τ1" in capsys.readouterr().out


def test_a_folder_of_runs_is_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(folder, folder.parent / "other")
    assert main(["watch", str(folder.parent)]) == 0
    out = capsys.readouterr().out
    assert "run    gdi-i3" in out
    assert "other  gdi-i3" in out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["nowhere"], "nowhere is not a folder"),
        (["."], "has no run yet: start one with gdi train"),
        ([".", "--web"], "has no run yet: start one with gdi train"),
        ([".", "--port", "80"], "--port needs a server: add --web"),
        ([".", "--open"], "--open needs a server: add --web"),
        ([".", "--web", "--port", "65536"], "--port must be from 0 to 65535"),
        ([".", "--web", "--port", "x"], "--port: 'x' is not a number"),
    ],
)
def test_bad_input_is_one_line(
    argv: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in error_line(["watch", *argv], capsys)


def test_a_port_in_use_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = error_line(["watch", str(folder), "--web", "--port", str(port)], capsys)
    why = "Address already in use. Choose another port, or 0 for any free one."
    assert said == f"gdi: error: --port {port} cannot be used: {why}\n"


# The server


class Client:
    """Requests to a server as they are written, without the care of a library."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, target: str, method: str = "GET", hosts: list[str] | None = None) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        for host in [f"127.0.0.1:{self.port}"] if hosts is None else hosts:
            connection.putheader("Host", host)
        connection.endheaders()
        answer = connection.getresponse()
        with contextlib.closing(connection):
            return answer.status, dict(answer.getheaders()), answer.read().decode()

    def steps(self, name: str = "run") -> str:
        code, _, text = self.ask(f"/data?run={name}")
        assert code == 200
        facts = next(b for s in json.loads(text)["sections"] for b in s["blocks"] if b["kind"] == "facts")
        return str(dict(map(tuple, facts["items"]))["state"]).partition(" steps")[0]  # type: ignore[arg-type]


@contextlib.contextmanager
def serving(root: Path) -> Iterator[Client]:
    server = make_server(root, 0)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Client(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def client(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr(live, "REST", -1.0)  # read again at each request
    with serving(folder) as found:
        yield found


def test_a_whole_new_line_is_a_new_point_and_half_a_line_is_none(folder: Path, client: Client) -> None:
    assert client.steps() == "stopped at 9,000 of 10,000"
    line = json.dumps(train_line(9500))
    append(folder, line[:100])
    assert client.steps() == "stopped at 9,000 of 10,000"
    append(folder, line[100:] + "\n")
    assert client.steps() == "stopped at 9,500 of 10,000"


def test_a_rewound_log_starts_the_data_anew(folder: Path, client: Client) -> None:
    lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_text("".join(lines[:4]))
    assert client.steps() == "stopped at 4,000 of 10,000"


def test_a_run_that_is_gone_is_said(folder: Path, client: Client) -> None:
    shutil.rmtree(folder)
    code, _, text = client.ask("/data")
    assert (code, text) == (404, "The run is gone, or there is none of this name.")


@pytest.mark.parametrize(
    "target",
    [
        "/data?run=../../etc",
        "/data?run=..%2f..%2fetc",
        "/data?run=/etc",
        "/data?run=",
        "/data?run=.",
        "/data?run=run&run=run",
        "/data?file=config.json",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/config.json",
        "/data/",
        "/favicon.ico",
    ],
)
def test_anything_but_the_two_routes_is_refused(client: Client, target: str) -> None:
    code, _, text = client.ask(target)
    assert code == 404
    assert len(text) < 60


@pytest.mark.parametrize(
    "hosts",
    [
        ["evil.example"],
        ["evil.example:{port}"],
        ["127.0.0.1"],
        ["127.0.0.1:1"],
        [],
        ["127.0.0.1:{port}", "evil.example"],
    ],
)
def test_a_foreign_host_is_refused(client: Client, hosts: list[str]) -> None:
    code, _, text = client.ask("/data", hosts=[host.format(port=client.port) for host in hosts])
    assert (code, text) == (403, "This server answers requests for this machine only.")


def test_localhost_is_this_machine(client: Client) -> None:
    assert client.ask("/data", hosts=[f"localhost:{client.port}"])[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_nothing_can_be_written(client: Client, method: str) -> None:
    assert client.ask("/data", method)[0] == 501


def test_the_server_listens_on_the_loopback_address_alone(folder: Path) -> None:
    with make_server(folder, 0) as server:
        assert server.socket.getsockname()[0] == "127.0.0.1"


def test_answers_forbid_frames_sniffing_and_other_origins(client: Client) -> None:
    for target in ("/", "/data", "/nothing"):
        _, headers, _ = client.ask(target)
        assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "Access-Control-Allow-Origin" not in headers
    assert client.ask("/nothing")[1]["Content-Type"].startswith("text/plain")


def test_reading_leaves_the_folder_as_it_is(folder: Path, client: Client) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    client.ask("/")
    client.ask("/data")
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_several_runs_are_listed_and_their_names_are_text(tmp_path: Path) -> None:
    for name in ("one", "<script>alert(1)<b>"):
        write_run(tmp_path / name, MOVES)
    with serving(tmp_path) as client:
        code, _, text = client.ask("/")
        assert code == 200
        assert "<script>" not in text
        assert '<a href="/?run=one">one</a>' in text
        assert '<a href="/?run=%3Cscript%3Ealert%281%29%3Cb%3E">&lt;script&gt;alert(1)&lt;b&gt;</a>' in text
        assert client.steps("one") == "stopped at 9,000 of 10,000"
        assert client.ask("/?run=%3Cscript%3Ealert%281%29%3Cb%3E")[0] == 200
        assert client.ask("/data")[0] == 404  # which of the two is not said


def test_a_slow_answer_is_given_again_for_a_while(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: now[0])
    reads = []

    def slow(path: Path) -> Any:
        reads.append(now[0])
        now[0] += 2.0
        return read_run(path)

    monkeypatch.setattr(live, "read_run", slow)
    reports = LiveReports(folder)
    for seconds in (0.0, 3.0, 7.9, 8.1):  # 2 seconds to read, and 3 · 2 to rest
        now[0] = max(now[0], seconds)
        reports.answer("/data")
    assert reads == [0.0, 8.1]


def test_a_browser_follows_the_run_and_says_what_is_gone(folder: Path) -> None:
    log, gone = str(folder / "metrics.jsonl"), str(folder.with_name("moved"))
    events = [
        {"append": [log, json.dumps(train_line(9500)) + "\n"], "says": "9,500 of 10,000"},
        {"offline": True, "says": "The server does not answer. The page shows the last data that arrived."},
        {"offline": False, "append": [log, json.dumps(train_line(9700)) + "\n"], "says": "9,700 of 10,000"},
        {"rename": [str(folder), gone], "says": "The run is gone"},
    ]
    with serving(folder) as client:
        url = f"http://127.0.0.1:{client.port}/?run={folder.name}"
        (found,) = open_pages([{"url": url, "walk": False, "events": events}])
    assert "9,000 of 10,000" in found["text"]
    assert None not in found["seen"], f"the milliseconds until the page said each event: {found['seen']}"


# The notebook


def test_a_notebook_shows_the_report_in_a_frame(folder: Path) -> None:
    view = gdi.watch(folder)
    assert repr(view) == f"{folder}: stopped at 9,000 of 10,000 steps; gdi train --resume continues it"
    shown_html = view._repr_html_()
    assert shown_html.startswith('<iframe title="report" sandbox="allow-scripts"')
    assert shown_html.count("<") == 2  # the frame's own tags: the page inside is escaped
    assert "&lt;title&gt;gdi-i3 on MinAtar/Breakout-v0&lt;/title&gt;" in shown_html


def test_a_notebook_is_told_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a run folder"):
        gdi.watch(tmp_path)
