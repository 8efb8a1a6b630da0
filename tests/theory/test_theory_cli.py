from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gdi.cli import theory as theory_command
from gdi.cli.algorithms import run as run_algorithms
from gdi.cli.main import main
from gdi.cli.theory import run as run_theory
from gdi.presets import PRESETS
from gdi.theory import counterexamples, paper_errors, report
from gdi.theory.figures import NAMES
from gdi.theory.learning import Setting, helps
from gdi.theory.report import Report, execute


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few searches, and a learning run of a few iterations: the command's plumbing does not need more."""
    short: list[Setting] = [replace(helps(), iterations=3)]
    monkeypatch.setattr(report, "learning_settings", lambda: short)
    monkeypatch.setattr(counterexamples, "SEARCHES", {"a": counterexamples.without_comonotonicity})
    monkeypatch.setattr(paper_errors, "SEARCHES", {"b": paper_errors.kl_remark})


@pytest.fixture(scope="module")
def small_report() -> Report:
    return execute(60, 0, lambda name: None)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["theory", "--trials", "0"], "--trials must be 1 or more, not 0."),
        (["theory", "--trials", "-5"], "--trials must be 1 or more, not -5."),
        (["theory", "--trials", "many"], "'many' is not a number"),
        (["theory", "--trials", "1.5"], "'1.5' is not a whole number"),
        (["theory", "--seed", "-1"], "--seed must be 0 or more, not -1."),
        (["theory", "--nonsense"], "unknown option --nonsense"),
        (["theory", "extra"], "unexpected argument 'extra'"),
        (["algorithms", "--trials", "3"], "unknown option --trials"),
    ],
)
def test_bad_input_is_one_line_and_code_2(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.usefixtures("quick")
def test_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    run_theory(["--trials", "20", "--seed", "3", "--json"])
    record = json.loads(capsys.readouterr().out)
    assert (record["trials"], record["seed"], record["tolerance"]) == (20, 3, 1e-12)
    assert all(claim["instances"] == 20 for claim in record["claims"])
    assert all(entry["found"] for entry in record["dropped_assumptions"] + record["slips_of_the_text"])


@pytest.mark.usefixtures("quick")
def test_the_seed_is_used_and_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    records = []
    for seed in ("0", "0", "1"):
        run_theory(["--trials", "20", "--seed", seed, "--json"])
        records.append(json.loads(capsys.readouterr().out))
    assert records[0] == records[1]
    for claim, other in zip(records[0]["claims"], records[2]["claims"], strict=True):
        assert claim["worst_margin"] != other["worst_margin"] or abs(claim["worst_margin"]) < 1e-14


def test_everything_comes_out_as_written(small_report: Report) -> None:
    assert small_report.ok
    assert small_report.as_dict()["ok"]


def test_the_tables(small_report: Report, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(theory_command, "_execute", lambda trials, seed: small_report)
    assert run_theory(["--trials", "60"]) == 0
    out = capsys.readouterr().out
    for word in (
        "lemma:dct_R1",
        "thm:1st_gdi",
        "worst margin",
        "theorem-1-moving-theta",
        "wins",
        "all as docs/theory.md",
    ):
        assert word in out


def test_a_violation_is_exit_code_1_and_is_shown(
    small_report: Report, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    claim, verdict = small_report.claims[0]
    broken = replace(small_report, claims=((claim, replace(verdict, worst=-1e-6)), *small_report.claims[1:]))
    monkeypatch.setattr(theory_command, "_execute", lambda trials, seed: broken)
    assert run_theory([]) == 1
    assert "VIOLATED" in capsys.readouterr().out


@pytest.mark.parametrize("part", ["dropped", "slips"])
def test_a_missing_counterexample_is_exit_code_1(
    small_report: Report, part: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = getattr(small_report, part)
    broken = replace(small_report, **{part: ((entries[0][0], None), *entries[1:])})
    monkeypatch.setattr(theory_command, "_execute", lambda trials, seed: broken)
    assert run_theory([]) == 1
    assert "no counterexample found" in capsys.readouterr().out
    assert not broken.as_dict()["ok"]


def test_a_learning_run_that_ends_otherwise_is_exit_code_1(
    small_report: Report, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = small_report.learning[0]
    swapped = replace(run, with_e=run.without_e, without_e=run.with_e)
    broken = replace(small_report, learning=(swapped, *small_report.learning[1:]))
    monkeypatch.setattr(theory_command, "_execute", lambda trials, seed: broken)
    assert run_theory([]) == 1
    assert "loses, expected wins" in capsys.readouterr().out


def test_figures_are_drawn_once_and_never_overwritten(
    small_report: Report, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(theory_command, "_execute", lambda trials, seed: small_report)
    place = tmp_path / "new" / "place"
    assert main(["theory", "--figures", str(place), "--json"]) == 0
    assert sorted(path.name for path in place.iterdir()) == sorted(NAMES)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in place.iterdir())
    out, err = capsys.readouterr()
    json.loads(out)
    assert err.count("wrote") == len(NAMES)

    monkeypatch.setattr(theory_command, "_execute", lambda trials, seed: pytest.fail("computed before refusing"))
    assert main(["theory", "--figures", str(place)]) == 2
    assert "already exists: move it" in capsys.readouterr().err
    assert main(["theory", "--figures", str(place / NAMES[0])]) == 2
    assert "is a file: name a directory" in capsys.readouterr().err
    assert main(["theory", "--figures", str(place / NAMES[0] / "below")]) == 2
    assert "cannot be created" in capsys.readouterr().err


def test_algorithms_prints_the_table_and_its_deviations(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_algorithms([]) == 0
    out = capsys.readouterr().out
    for word in ("dqn", "Rainbow", "PBT (n = 2)", "Go-Explore", "gdi-h3", "GDI-I^3 w/o E", "NGU has no bandit"):
        assert word in out


def test_algorithms_explains_its_symbols_and_fits_into_120_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["algorithms"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 120
    for symbol in ("(Λ): ", "(θ_λ): ", "(P⁰): ", "(E): ", "w/o E means"):
        assert symbol in out


def test_algorithms_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_algorithms(["--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert len(record["algorithms"]) == 8 + len(PRESETS)
    assert all(row["agrees"] for row in record["algorithms"])
    assert {row["name"] for row in record["as_published"]} == {"NGU", "Agent57"}


def test_disagreement_with_the_paper_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from gdi.cli import algorithms

    monkeypatch.setitem(algorithms.PAPER_CLASS, "Rainbow", "GDI-I^7")
    assert run_algorithms([]) == 1
    assert "GDI-I^7" in capsys.readouterr().out


@pytest.mark.parametrize(
    "statement",
    [
        "import gdi.theory, gdi.theory.report, gdi.theory.figures, gdi.theory.live, gdi.theory.literature",
        "from gdi.cli.main import main; main(['algorithms', '--json'])",
    ],
)
def test_no_torch_and_no_matplotlib(statement: str) -> None:
    check = f"import sys; {statement}; sys.exit(any(name in sys.modules for name in ('torch', 'matplotlib')))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
