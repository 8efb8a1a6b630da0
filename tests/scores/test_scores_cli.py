"""``gdi scores`` as its users meet it: exit codes, one-line errors, formats, speed, and no torch."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gdi.cli.main import main
from gdi.scores.paper import table_names

ROOT = Path(__file__).parents[2]


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["scores", *words]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def complaint(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line on stderr of a command that must fail with exit code 2 and print nothing else."""
    assert main(["scores", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_judging_a_file(one_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = answer(capsys, str(one_file), "--frames", "200e6")
    assert "one: 57 games, 1 run per game, 200M frames = 0.114 years of play" in text
    assert "9620.93" in text
    assert "4.81E-07" in text
    assert "jamesbond 41%" in text


@pytest.mark.parametrize(("reference", "mean"), [("paper", 9620.93), ("standard", 10722.07), ("printed", 9620.28)])
def test_references(one_file: Path, capsys: pytest.CaptureFixture[str], reference: str, mean: float) -> None:
    text = answer(capsys, str(one_file), "--reference", reference, "--format", "json")
    rows = {row["quantity"]: row["value"] for row in json.loads(text)["aggregates_one"]}
    assert rows["mean HNS %"] == pytest.approx(mean, abs=0.005)
    assert rows["human world record breakthroughs"] == 22


@pytest.mark.parametrize("style", ["table", "csv", "json", "markdown", "latex", "html"])
def test_every_format_writes_the_same_number(five_file: Path, capsys: pytest.CaptureFixture[str], style: str) -> None:
    words = (str(five_file), "--against", "agent57", "--replicates", "50", "--format", style)
    text = answer(capsys, *words)
    # Agent57's mean HNS: rounded for people, in full for programs.
    assert "4763.7" in text if style not in ("json", "csv") else re.search(r"\b4763\.6[89]\d{6}", text)
    out = five_file.parent / "deep" / "report"
    assert answer(capsys, *words, "--out", str(out)) == ""
    assert out.read_text(encoding="utf-8") == text


def test_the_bootstrap_seed_decides(five_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (str(five_file), "--against", "none", "--replicates", "100", "--show", "aggregates", "--format", "csv")
    first = answer(capsys, *words, "--seed", "1")
    assert first == answer(capsys, *words, "--seed", "1")
    assert first != answer(capsys, *words, "--seed", "2")
    narrow, wide = (
        float(next(csv.DictReader(io.StringIO(answer(capsys, *words, "--confidence", level))))["low"])
        for level in ("0.5", "0.99")
    )
    assert wide < narrow
    without = answer(capsys, *words[:3], "--replicates", "0", "--show", "aggregates", "--format", "csv")
    assert without.splitlines()[0] == "quantity,value"


def test_show_and_common_and_against(one_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.DictReader(io.StringIO(answer(capsys, str(one_file), "--show", "standing", "--format", "csv"))))
    assert len(rows) == 14
    assert {row["games"] for row in rows} == {"57", "55", "36"}
    words = (str(one_file), "--show", "standing", "--format", "csv", "--common", "--against", "simple,muzero")
    rows = list(csv.DictReader(io.StringIO(answer(capsys, *words))))
    assert {row["agent"]: row["games"] for row in rows} == {"one": "36", "SimPLe": "36", "MuZero": "36"}
    games = list(csv.DictReader(io.StringIO(answer(capsys, str(one_file), "--show", "games", "--format", "csv"))))
    assert len(games) == 57


def test_paper_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert "9620.93" in answer(capsys, "paper", "--table", "summary")
    everything = json.loads(answer(capsys, "paper", "--format", "json"))
    assert set(everything) == {*table_names(), "notes"}
    checked = answer(capsys, "paper", "--check", "--table", "saber_10b")
    assert "NGU: HWRB" in checked
    assert "Rainbow" not in checked
    assert answer(capsys, "paper", "--check", "--format", "markdown") == (ROOT / "docs" / "errata.md").read_text()
    standard = answer(capsys, "paper", "--table", "summary", "--reference", "standard")
    assert "10722.07" in standard


def test_a_file_called_paper(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("paper").write_text("pong,20\n")
    assert "paper: 1 game," in answer(capsys, "./paper", "--against", "none")


def test_figures(tmp_path: Path, one_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "figures"
    text = answer(capsys, "figures", str(one_file), "--against", "agent57", "--out", str(out), "--only", "page")
    assert "index.html" in text
    assert "one is missing from the figures that plot frames: add --frames N." in text
    assert (out / "index.html").stat().st_size > 4e6


def test_figures_obey_their_options(tmp_path: Path, five_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def page(*words: str) -> str:
        out = tmp_path / "-".join(words).replace("/", "")
        answer(capsys, "figures", str(five_file), "--against", "gdi_h3", "--only", "page", "--out", str(out), *words)
        text = (out / "index.html").read_text(encoding="utf-8")
        return text[text.index("<body>") :]

    plain = page("--frames", "200M", "--replicates", "50")
    assert "reference table &#x27;paper&#x27;" in plain
    assert "9,620.93 %" in plain
    assert '"toself"' in plain  # a confidence band
    assert "200M frames, 57 games" in plain
    assert '"toself"' not in page("--replicates", "0")
    assert "10,722.07 %" in page("--reference", "standard", "--replicates", "0")
    assert plain != page("--frames", "200M", "--replicates", "50", "--seed", "1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give a file of scores"),
        (("absent.csv",), "absent.csv: no such file or run folder"),
        ((".",), "is a directory, and not a run folder"),
        (("{one}", "--formt", "csv"), "unknown option --formt. Did you mean '--format'"),
        (("{one}", "--format", "xml"), "unknown format 'xml'"),
        (("{one}", "--against", "agent75"), "unknown agent 'agent75'. Did you mean 'agent57'"),
        (("{one}", "--frames", "many"), "--frames 'many' is not a positive number"),
        (("{one}", "--frames"), "--frames needs a value"),
        (("{one}", "--replicates", "-3"), "--replicates '-3' is not a whole number"),
        (("{one}", "--seed", "x"), "--seed 'x' is not a whole number"),
        (("{one}", "--confidence", "95"), "--confidence '95' is not between 0 and 1"),
        (("{one}", "--reference", "wang"), "unknown reference 'wang'"),
        (("{one}", "--show", "game"), "unknown part 'game' for --show. Did you mean 'games'"),
        (
            ("{one}", "--show", "standing", "--against", "none"),
            "needs other agents to compare with",
        ),
        (("{one}", "--out", "/dev/null/x"), "--out /dev/null/x cannot be written"),
        (("paper", "--table", "hns_20m"), "unknown table 'hns_20m'. Did you mean 'hns_200m'"),
        (("paper", "extra"), "unexpected argument 'extra'"),
        (("figures",), "the figures need a folder: add --out DIR"),
        (("figures", "--out", "x", "--only", "pages"), "unknown part 'pages' for --only"),
        (("figures", "--out", "x", "--against", "none"), "nothing to draw"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    one_file: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    assert message in complaint(capsys, *(word.format(one=one_file) for word in words))


def test_missing_drawing_libraries_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gdi.scores.gallery", None)
    assert "'.[report]'" in complaint(capsys, "figures", "--out", str(tmp_path / "x"))


def test_help_lists_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    for words, options in (
        ((), ("--against", "--frames", "--format", "--reference", "--replicates", "--common")),
        (("paper",), ("--table", "--check", "--reference")),
        (("figures",), ("--out", "--only")),
    ):
        with pytest.raises(SystemExit) as stop:
            main(["scores", *words, "--help"])
        assert stop.value.code == 0
        text = capsys.readouterr().out
        assert all(option in text for option in options)


# ------------------------------------------------------------------------------------------------- start and speed


def _python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def test_importing_scores_is_light() -> None:
    heavy = "('torch', 'scipy', 'matplotlib', 'plotly', 'pandas', 'gymnasium', 'ale_py', 'rich')"
    assert _python(f"import sys, gdi.scores; print([m for m in {heavy} if m in sys.modules])") == "[]"


def test_judging_a_file_needs_neither_torch_nor_scipy(one_file: Path) -> None:
    heavy = "('torch', 'scipy', 'matplotlib', 'plotly', 'pandas', 'gymnasium')"
    code = f"import sys; from gdi.cli.main import main; main(['scores', {str(one_file)!r}, '--out', '/dev/null']);"
    assert _python(code + f"print([m for m in {heavy} if m in sys.modules])") == "[]"
