"""``gdi scores``: judge Atari scores, rebuild and check the paper's tables, draw its figures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from gdi.errors import UserError, install_extra, nearest
from gdi.scores.tables import FORMATS, Table, check_format, parse_frames, render

JUDGE_HELP = """\
  gdi scores FILE...             judge score files or run folders of `gdi train`
  gdi scores paper               rebuild the paper's score tables from raw scores; --check compares them with the print
  gdi scores figures --out DIR   draw the paper's figures, with your agents if you name files

`gdi scores paper --help` and `gdi scores figures --help` say more. A file called "paper" is given as ./paper.
Files: CSV or JSON, one or many seeds, wide or long, games in any usual spelling (ms_pacman, ALE/MsPacman-v5).
Each file is an agent named after it; NAME=FILE names it, and inputs of the same name are pooled as seeds.
"""


class _Parser(argparse.ArgumentParser):
    """argparse, but a mistake is a `UserError`: one line, with the nearest option."""

    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized arguments: "):
            unknown = message.removeprefix("unrecognized arguments: ").split()[0]
            options = [option for action in self._actions for option in action.option_strings]
            raise UserError(f"unknown option {unknown!r}.{nearest(unknown, options)} See `{self.prog} --help`.")
        raise UserError(f"{message}. See `{self.prog} --help`.")


def run(argv: list[str]) -> int:
    """Dispatch on the first word; everything but ``paper`` and ``figures`` is a file or an option of judging."""
    if argv and argv[0] == "paper":
        return _paper(argv[1:])
    if argv and argv[0] == "figures":
        return _figures(argv[1:])
    return _judge(argv)


def _integer(name: str, least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(float(text)) if float(text).is_integer() else None
        except (ValueError, OverflowError):
            value = None
        if value is None or value < least:
            raise UserError(f"{name} {text!r} is not a whole number of at least {least}.")
        return value

    return parse


def _confidence(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise UserError(f"--confidence {text!r} is not between 0 and 1, such as 0.95.")
    return value


def _shared_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reference", default="paper", metavar="NAME", help="paper (default), printed or standard")
    parser.add_argument("--frames", type=parse_frames, metavar="N", help="training frames of your agents: 200e6, 200M")
    parser.add_argument(
        "--replicates",
        type=_integer("--replicates", 0),
        default=2000,
        metavar="N",
        help="bootstrap replicates for the confidence intervals of agents with seeds; 0 for none (default: 2000)",
    )
    parser.add_argument(
        "--confidence", type=_confidence, default=0.95, metavar="P", help="of the intervals (default: 0.95)"
    )
    parser.add_argument(
        "--seed", type=_integer("--seed", 0), default=0, metavar="N", help="of the bootstrap (default: 0)"
    )


def _output_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", type=check_format, default="table", metavar="NAME", help=", ".join(FORMATS))
    parser.add_argument("--out", type=Path, metavar="FILE", help="write there instead of to the screen")


def _judge(argv: list[str]) -> int:
    from gdi.scores.agents import choose_agents
    from gdi.scores.intervals import Bootstrap
    from gdi.scores.reading import load_agents
    from gdi.scores.reference import check_reference_name
    from gdi.scores.report import judge, report_tables

    parser = _Parser(
        prog="gdi scores",
        usage="gdi scores FILE... [options]",
        epilog=JUDGE_HELP,
        description="HNS, HWRNS, SABER and world records of Atari scores, beside published agents.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="score files or run folders")
    parser.add_argument(
        "--against",
        default="all",
        metavar="NAMES",
        help="published agents: all (default), none, or agent57,muzero,...",
    )
    parser.add_argument("--common", action="store_true", help="compare everybody on the games that all of them report")
    parser.add_argument("--show", default="all", metavar="PART", help="all (default), aggregates, standing or games")
    _shared_options(parser)
    _output_options(parser)
    options = parser.parse_args(argv)
    if not options.files:
        raise UserError("give a file of scores, `paper` or `figures`. See `gdi scores --help`.")
    check_reference_name(options.reference)
    against = choose_agents(options.against, options.reference)
    loaded = load_agents(options.files, options.frames)
    how = Bootstrap(options.replicates, options.confidence, options.seed)
    report = judge(loaded.agents, against, options.reference, how, options.common)
    tables = report_tables(report)
    if loaded.notes:
        tables[-1] = replace(tables[-1], notes=(*loaded.notes, *tables[-1].notes))
    return _write(_shown(tables, options.show), options.format, options.out)


def _shown(tables: list[Table], part: str) -> list[Table]:
    if part == "all":
        return tables
    parts = ("aggregates", "standing", "games")
    if part not in parts:
        raise UserError(f"unknown part {part!r} for --show.{nearest(part, parts)} Choose from all, {', '.join(parts)}.")
    chosen = [table for table in tables if table.name == part or table.name.startswith(f"{part}_")]
    if not chosen:
        raise UserError(f"--show {part}: there is nobody to stand against (--against none).")
    return [*chosen[:-1], replace(chosen[-1], notes=tables[-1].notes)]


def _paper(argv: list[str]) -> int:
    from gdi.scores.errata import check_tables, errata_markdown
    from gdi.scores.paper import table_names
    from gdi.scores.rebuild import rebuild

    parser = _Parser(
        prog="gdi scores paper",
        description="Rebuilds the paper's score tables from raw scores; --check compares every printed number.",
        allow_abbrev=False,
    )
    parser.add_argument("--table", metavar="NAME", help="one of: " + ", ".join(table_names()) + " (default: all)")
    parser.add_argument(
        "--check", action="store_true", help="list each printed number that disagrees, and the likely cause"
    )
    parser.add_argument("--reference", default="paper", metavar="NAME", help="paper (default), printed or standard")
    _output_options(parser)
    options = parser.parse_args(argv)
    names = table_names() if options.table is None else (options.table,)
    for name in names:
        if name not in table_names():
            raise UserError(
                f"unknown table {name!r}.{nearest(name, table_names())} Tables: {', '.join(table_names())}."
            )
    if not options.check:
        return _write([rebuild(name, options.reference) for name in names], options.format, options.out)
    if options.format == "markdown" and options.table is None:
        return _emit(errata_markdown(options.reference), options.out)
    return _write(check_tables(names, options.reference), options.format, options.out)


def _figures(argv: list[str]) -> int:
    from gdi.scores.agents import choose_agents
    from gdi.scores.intervals import Bootstrap
    from gdi.scores.reading import load_agents
    from gdi.scores.reference import check_reference_name

    parser = _Parser(
        prog="gdi scores figures",
        description="Draws the paper's figures as PNG and SVG and one interactive page, index.html.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="score files or run folders to draw beside the published agents",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the figures")
    parser.add_argument(
        "--against",
        default="all",
        metavar="NAMES",
        help="published agents: all (default), none, or agent57,muzero,...",
    )
    parser.add_argument(
        "--only", default="all", metavar="PART", help="all (default), static (PNG and SVG) or page (HTML)"
    )
    _shared_options(parser)
    options = parser.parse_args(argv)
    if options.out is None:
        raise UserError("say where the figures go: gdi scores figures --out DIR.")
    if options.only not in ("all", "static", "page"):
        raise UserError(f"unknown part {options.only!r} for --only. Choose from all, static, page.")
    check_reference_name(options.reference)
    against = choose_agents(options.against, options.reference)
    loaded = load_agents(options.files, options.frames)
    mine = loaded.agents
    if not mine and not against:
        raise UserError("nothing to draw: no file and --against none.")
    try:
        from gdi.scores.gallery import draw_all
    except ModuleNotFoundError as error:
        raise UserError(f"figures need {error.name}: {install_extra('report')}.") from None
    how = Bootstrap(options.replicates, options.confidence, options.seed)
    try:
        written = draw_all(options.out, mine, against, options.reference, how, options.only)
    except OSError as error:
        raise UserError(f"--out {options.out}: cannot be written ({error.strerror}).") from None
    print(f"{len(written)} file{'s' if len(written) > 1 else ''} in {options.out}, the first {written[0].name}")
    for note in loaded.notes:
        print(note)
    for agent in mine:
        if agent.frames is None:
            print(f"{agent.name} is missing from the figures against frames: say --frames N.")
    return 0


def _write(tables: list[Table], style: str, out: Path | None) -> int:
    return _emit(render(tables, style), out)


def _emit(text: str, out: Path | None) -> int:
    if out is None:
        sys.stdout.write(text)
        return 0
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--out {out}: cannot be written ({error.strerror}).") from None
    return 0
