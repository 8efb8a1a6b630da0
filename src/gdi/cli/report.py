"""``gdi report RUN...``: write one page, or tables or pictures, about one run or many."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gdi.cli.parsing import OneLineParser, path_argument
from gdi.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from gdi.report.document import Section

PROG = "gdi report"
FORMATS = ("html", "csv", "png")
DESCRIPTION = """\
Write one page about a run, or about many. It shows what was trained, the learning curves, what the controller (E) did,
which λ paid, and the health of the run. The page is one file that needs no network. Runs that differ only in the seed
are one group.

RUN is a run folder, a folder of run folders, or a folder of a benchmark's records such as docs/results/minatar."""


def make_parser() -> OneLineParser:
    parser = OneLineParser(
        prog=PROG,
        usage=f"{PROG} RUN [RUN ...] [-o FILE] [OPTION ...]",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", nargs="+", type=path_argument, metavar="RUN", help="folder of a run, or of many")
    parser.add_argument(
        "-o",
        "--output",
        type=path_argument,
        metavar="FILE",
        help="file to write; a folder for png (default: report.html in the run folder, or in this folder for many)",
    )
    parser.add_argument(
        "--format",
        default="html",
        help=f"{', '.join(FORMATS)} (default: html); csv has the tables, without the figures",
    )
    parser.add_argument(
        "--baseline", default="", metavar="AGENT", help="compare games by score / this agent's mean score in each"
    )
    parser.add_argument(
        "--tsne", action="store_true", help="map the states that two runs kept by t-SNE, and measure their overlap"
    )
    return parser


def run(argv: list[str]) -> int:
    """Write the report, and print its path."""
    args = make_parser().parse_args(argv)
    if args.format not in FORMATS:
        raise UserError(
            f"unknown --format {args.format!r}.{did_you_mean(args.format, FORMATS)} Formats: {', '.join(FORMATS)}."
        )

    from gdi.report.collect import collect_runs
    from gdi.report.groups import group_runs
    from gdi.report.report import report

    runs = collect_runs(args.runs)
    agents = {group.agent: None for group in group_runs(runs)}
    if args.baseline and args.baseline not in agents:
        hint = did_you_mean(args.baseline, agents)
        raise UserError(f"unknown --baseline {args.baseline!r}.{hint} Agents: {', '.join(agents)}.")
    states = explored_states(args.runs) if args.tsne else None
    document = report(runs, args.baseline)
    if states is not None:
        document = replace(document, sections=(*document.sections, states))
    target = args.output or default_output(args.runs, args.format)
    print(write(document, target, args.format))
    return 0


def explored_states(folders: list[Path]) -> Section:
    """Return the section about the states of two runs."""
    from gdi.report.runs import is_run_folder, read_run
    from gdi.report.sections.explored import explored
    from gdi.report.states import read_states
    from gdi.report.tsne import map_states

    if len(folders) != 2 or not all(map(is_run_folder, folders)):
        raise UserError("--tsne compares two runs: name two run folders.")
    kept = [read_states(folder) for folder in folders]
    settings = [read_run(folder).settings for folder in folders]
    labels = [found.agent or folder.name for found, folder in zip(settings, folders, strict=True)]
    if labels[0] == labels[1]:
        labels = [folder.resolve().name for folder in folders]
    names = [settings[0].label_of(name) for name in settings[0].names]
    return explored(labels, kept, map_states(*kept), names)


def default_output(paths: list[Path], style: str) -> Path:
    """Return the file in the run folder, or in the current folder for several runs."""
    from gdi.report.runs import is_run_folder

    folder = paths[0] if len(paths) == 1 and is_run_folder(paths[0]) else Path()
    return folder / ("report" if style == "png" else f"report.{style}")


def write(document: object, target: Path, style: str) -> Path:
    """Write a document in one format; nothing is left behind if the disk refuses."""
    from gdi.report.document import Document
    from gdi.report.page import page

    assert isinstance(document, Document)
    try:
        if style == "html":
            return write_text(target, page(document))
        if style == "csv":
            from gdi.report.export import tables_in_csv

            return write_text(target, tables_in_csv(document))
        from gdi.report.png import write_pictures

        return write_pictures(document, target)
    except OSError as error:
        raise UserError(f"{target} cannot be written: {error.strerror}.") from None


def write_text(path: Path, text: str) -> Path:
    """Replace a file at once, so that a reader never sees half of it."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
    return path
