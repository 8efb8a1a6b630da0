"""``gdi scores``: compare Atari scores, rebuild and check the paper's tables, draw its figures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gdi.cli.parsing import OneLineParser, path_argument, shorten, whole_number
from gdi.errors import UserError, did_you_mean, install_hint
from gdi.scores.tables import FORMATS, Table, check_format, parse_frames, render

REFERENCE_HELP = "reference scores: paper, printed or standard (default: paper)"
JUDGE_HELP = """\
  gdi scores FILE...             compare score files or run folders of gdi train with published agents
  gdi scores paper               rebuild the paper's score tables from raw scores, and check them with --check
  gdi scores figures --out DIR   draw the paper's figures, with your agents if you name files

Run gdi scores paper --help and gdi scores figures --help for details. Write a file called "paper" as ./paper.
Files are CSV or JSON, with one or many seeds, wide or long. Games may have any usual spelling (ms_pacman,
ALE/MsPacman-v5). Each file is an agent with the name of the file. NAME=FILE gives another name.
Files of the same name are pooled as seeds.
"""


def run(argv: list[str]) -> int:
    """Run ``paper`` or ``figures`` if the first word says so. Any other word is a file or an option."""
    if argv and argv[0] == "paper":
        return _paper(argv[1:])
    if argv and argv[0] == "figures":
        return _figures(argv[1:])
    return _judge(argv)


def _integer(name: str, least: int) -> Callable[[str], int]:
    """Return a parser of whole numbers of at least ``least``."""

    def parse(text: str) -> int:
        try:
            value = whole_number(text)
        except argparse.ArgumentTypeError:
            value = least - 1
        if value < least:
            raise UserError(f"{name} {shorten(text)!r} is not a whole number of at least {least}.")
        return value

    return parse


def _confidence(text: str) -> float:
    """Parse a confidence between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise UserError(f"--confidence {text!r} is not between 0 and 1, such as 0.95.")
    return value


def _shared_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reference", default="paper", metavar="NAME", help=REFERENCE_HELP)
    parser.add_argument(
        "--frames", type=parse_frames, metavar="N", help="number of training frames of your agents, such as 200M"
    )
    parser.add_argument(
        "--mix-protocols", action="store_true", help="accept runs of different or changed Atari protocols"
    )
    parser.add_argument(
        "--replicates",
        type=_integer("--replicates", 0),
        default=2000,
        metavar="N",
        help="bootstrap replicates for the confidence intervals of agents with seeds, or 0 for none (default: 2000)",
    )
    parser.add_argument(
        "--confidence",
        type=_confidence,
        default=0.95,
        metavar="P",
        help="confidence level of the intervals (default: 0.95)",
    )
    parser.add_argument(
        "--seed", type=_integer("--seed", 0), default=0, metavar="N", help="seed for the bootstrap (default: 0)"
    )


def _output_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        type=check_format,
        default="table",
        metavar="NAME",
        help=f"output format: {', '.join(FORMATS)} (default: table)",
    )
    parser.add_argument("--out", type=path_argument, metavar="FILE", help="file to write (default: the screen)")


def _judge(argv: list[str]) -> int:
    from gdi.scores.agents import choose_agents
    from gdi.scores.intervals import Bootstrap
    from gdi.scores.readers import load_agents
    from gdi.scores.reference import check_reference_name
    from gdi.scores.report import judge
    from gdi.scores.summary_tables import report_tables

    parser = OneLineParser(
        prog="gdi scores",
        usage="gdi scores FILE... [options]",
        epilog=JUDGE_HELP,
        description="Compare Atari scores with humans (HNS), world records (HWRNS, SABER) and published agents.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="score files or run folders")
    parser.add_argument(
        "--against",
        default="all",
        metavar="NAMES",
        help="published agents to compare with: all, none, or names such as agent57,muzero (default: all)",
    )
    parser.add_argument("--common", action="store_true", help="compare all agents on the games that all of them report")
    parser.add_argument(
        "--show",
        default="all",
        metavar="PART",
        help="tables to show: all, aggregates, standing or games (default: all)",
    )
    _shared_options(parser)
    _output_options(parser)
    options = parser.parse_args(argv)
    if not options.files:
        raise UserError("no input given: give a file of scores, paper or figures. See gdi scores --help.")
    check_reference_name(options.reference)
    against = choose_agents(options.against, options.reference)
    loaded = load_agents(options.files, options.frames, mix_protocols=options.mix_protocols)
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
        raise UserError(
            f"unknown part {part!r} for --show.{did_you_mean(part, parts)} Choose from all, {', '.join(parts)}."
        )
    chosen = [table for table in tables if table.name == part or table.name.startswith(f"{part}_")]
    if not chosen:
        raise UserError(f"--show {part} needs other agents to compare with: drop --against none.")
    return [*chosen[:-1], replace(chosen[-1], notes=tables[-1].notes)]


def _paper(argv: list[str]) -> int:
    from gdi.scores.errata import check_tables, errata_markdown
    from gdi.scores.paper import table_names
    from gdi.scores.rebuild import rebuild

    parser = OneLineParser(
        prog="gdi scores paper",
        description="Rebuild the paper's score tables from raw scores. --check compares every printed number.",
    )
    parser.add_argument("--table", metavar="NAME", help=f"table to rebuild: {', '.join(table_names())} (default: all)")
    parser.add_argument(
        "--check", action="store_true", help="list each printed number that is wrong, with the likely cause"
    )
    parser.add_argument("--reference", default="paper", metavar="NAME", help=REFERENCE_HELP)
    _output_options(parser)
    options = parser.parse_args(argv)
    names = table_names() if options.table is None else (options.table,)
    for name in names:
        if name not in table_names():
            raise UserError(
                f"unknown table {name!r}.{did_you_mean(name, table_names())} Tables: {', '.join(table_names())}."
            )
    if not options.check:
        return _write([rebuild(name, options.reference) for name in names], options.format, options.out)
    if options.format == "markdown" and options.table is None:
        return _emit(errata_markdown(options.reference), options.out)
    return _write(check_tables(names, options.reference), options.format, options.out)


def _figures(argv: list[str]) -> int:
    from gdi.scores.agents import choose_agents
    from gdi.scores.intervals import Bootstrap
    from gdi.scores.readers import load_agents
    from gdi.scores.reference import check_reference_name
    from gdi.scores.summaries import replicate_notes

    parser = OneLineParser(
        prog="gdi scores figures",
        description="Draw the paper's figures as PNG and SVG, and one interactive page, index.html.",
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="score files or run folders to draw next to the published agents",
    )
    parser.add_argument("--out", type=path_argument, metavar="DIR", help="folder for the figures")
    parser.add_argument(
        "--against",
        default="all",
        metavar="NAMES",
        help="published agents to compare with: all, none, or names such as agent57,muzero (default: all)",
    )
    parser.add_argument(
        "--only", default="all", metavar="PART", help="output: static (PNG and SVG), page (HTML) or all (default: all)"
    )
    _shared_options(parser)
    options = parser.parse_args(argv)
    if options.out is None:
        raise UserError("the figures need a folder: add --out DIR.")
    if options.only not in ("all", "static", "page"):
        raise UserError(f"unknown part {options.only!r} for --only. Choose from all, static, page.")
    check_reference_name(options.reference)
    against = choose_agents(options.against, options.reference)
    loaded = load_agents(options.files, options.frames, mix_protocols=options.mix_protocols)
    mine = loaded.agents
    if not mine and not against:
        raise UserError("nothing to draw: give a file, or drop --against none.")
    try:
        from gdi.scores.gallery import draw_all
    except ModuleNotFoundError as error:
        raise UserError(f"figures need {error.name}: {install_hint('report')}.") from None
    how = Bootstrap(options.replicates, options.confidence, options.seed)
    try:
        written = draw_all(options.out, mine, against, options.reference, how, options.only)
    except OSError as error:
        raise UserError(f"--out {options.out} cannot be written: {error.strerror}.") from None
    print(f"{len(written)} file{'s' if len(written) > 1 else ''} in {options.out}, the first {written[0].name}")
    for note in (*loaded.notes, *(note for agent in mine for note in replicate_notes(agent, how))):
        print(note)
    for agent in mine:
        if agent.frames is None:
            print(f"{agent.name} is missing from the figures that plot frames: add --frames N.")
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
        raise UserError(f"--out {out} cannot be written: {error.strerror}.") from None
    return 0
