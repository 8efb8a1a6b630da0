"""The commands and links of README and the pages: each command is accepted as printed, and each anchor exists."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from gdi.cli import bench
from gdi.cli.main import COMMANDS, main
from gdi.cli.sweep_request import make_parser, parse_request
from gdi.cli.train import parse, parse_shown
from gdi.errors import UserError
from gdi.sweep.jobs import check_plan

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOTEBOOKS = ROOT / "docs" / "results" / "notebook"  # their commands belong to earlier settings
STORED_RUN = Path(__file__).parent / "data" / "format1" / "run-minatar"
# Commands that are quick and need nothing. The pages of scores and theory have tests that run their commands.
QUICK = ("envs", "presets", "algorithms")


def commands() -> list[tuple[str, str]]:
    """Return (page, command) for each gdi command in a block of code, without its comment."""
    found = []
    for page in (page for page in PAGES if NOTEBOOKS not in page.parents):
        for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M):
            lines = (line.partition(" #")[0].strip() for line in block.splitlines())
            found += [(str(page.relative_to(ROOT)), line) for line in lines if re.match(r"gdi [a-z]", line)]
    return [(page, line) for page, line in found if "..." not in line]


def check(words: list[str], here: Path) -> None:
    """Parse one command as the program does, or run it if it is quick. Folders that it names hold a stored run."""
    command, rest = words[0], words[1:]
    assert command in COMMANDS, command
    if "--resume" in rest or command == "evaluate":
        folder = here / (rest[rest.index("--run-dir") + 1] if "--resume" in rest else rest[0])
        if not folder.exists():
            shutil.copytree(STORED_RUN, folder)
    if command in QUICK:
        assert main(words) == 0
    elif command == "train" and {"--help", "--help-all"} & set(rest):
        parse_shown(rest)
    elif command == "train":
        parse(rest)
    elif command == "sweep":
        check_sweep(rest, here)
    elif command == "bench":
        parse(bench.make_parser().parse_known_args(rest)[1], bench.PROG)


def check_sweep(words: list[str], here: Path) -> None:
    """Parse a command of gdi sweep. Folders that it names hold a sweep, and plan files are those of its page."""
    example = re.search(r"^```toml\n(envs.*?)^```", (ROOT / "docs" / "sweep.md").read_text(), re.S | re.M)
    assert example is not None
    if words[0] == "status":
        return
    for word in words:
        if word.endswith("plan.toml"):
            (here / word).write_text(example[1], encoding="utf-8")
        elif word.endswith(".toml"):
            (here / word).parent.mkdir(exist_ok=True)
            (here / word).write_text((ROOT / word).read_text(encoding="utf-8"), encoding="utf-8")
    if words[0].startswith("runs/"):
        (here / words[0]).mkdir(parents=True, exist_ok=True)
        (here / words[0] / "plan.toml").write_text(example[1], encoding="utf-8")
    check_plan(parse_request(make_parser().parse_args(words)).plan)


def test_every_command_of_a_page_is_accepted_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    found = commands()
    assert len(found) > 40, "the search for commands finds too few"
    for page, line in found:
        try:
            check(shlex.split(line)[1:], tmp_path)
        except UserError as error:
            pytest.fail(f"{page}: {line}: {error}")
    capsys.readouterr()


def test_a_wrong_command_is_found(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"unknown option --data\.no-such"):
        check(shlex.split("train --env CartPole-v1 --data.no-such 3"), tmp_path)
    with pytest.raises(AssertionError):
        check(["trian"], tmp_path)


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub makes of a page's headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_anchor_of_a_link_exists() -> None:
    found = 0
    for page in PAGES:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                found += 1
                where = page.parent / target if target else page
                assert anchor in anchors(where), f"{page.name} -> {target}#{anchor}"
    assert found > 5, "the search for anchors finds too few"
