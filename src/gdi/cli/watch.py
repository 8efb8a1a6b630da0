"""``gdi watch [RUN|DIR]``: follow runs by their files, in the terminal or in a browser."""

from __future__ import annotations

import argparse
import contextlib
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from gdi.cli.parsing import OneLineParser, path_argument, whole_number
from gdi.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PROG = "gdi watch"
DEFAULT_PORT = 6161
EVERY_SECONDS = 2.0
PLAIN_HEIGHT = 40  # lines, where the output is no terminal
DESCRIPTION = """\
Follow a run by its files, also from another shell: what the controller did, the training return, evaluations and
health. A folder of several runs is listed. A run that is not going is shown once. Nothing is written."""


def make_parser() -> OneLineParser:
    parser = OneLineParser(prog=PROG, description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter)
    port = f"port of --web; 0 takes any free one (default: {DEFAULT_PORT})"
    parser.add_argument(
        "folder",
        nargs="?",
        type=path_argument,
        default=Path("runs"),
        metavar="RUN|DIR",
        help="folder of a run, or of many (default: runs)",
    )
    parser.add_argument("--web", action="store_true", help="serve the report to browsers on this machine until Ctrl-C")
    parser.add_argument("--port", type=whole_number, help=port)
    parser.add_argument("--open", action="store_true", help="open a browser; needs --web")
    return parser


def run(argv: list[str]) -> int:
    """Show the runs until they end, or until Ctrl-C."""
    args = make_parser().parse_args(argv)
    for option, given in (("--port", args.port is not None), ("--open", args.open)):
        if given and not args.web:
            raise UserError(f"{option} needs a server: add --web.")
    if args.web:
        port = DEFAULT_PORT if args.port is None else args.port
        if not 0 <= port < 1 << 16:
            raise UserError(f"--port must be from 0 to 65535, not {port}.")
        serve(args.folder, port, args.open)
    else:
        with contextlib.suppress(KeyboardInterrupt):
            follow(args.folder)
    return 0


def serve(folder: Path, port: int, opens: bool) -> None:
    """Serve the report until Ctrl-C."""
    from gdi.report.live import make_server, url_of

    with make_server(folder, port) as server:
        print(f"The report is at {url_of(server)} (stop with Ctrl-C)", flush=True)
        if opens:
            webbrowser.open(url_of(server))
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()


def follow(folder: Path) -> None:
    """Show a screen of text every two seconds while a run is going, and leave the last one on the terminal."""
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    draw, going = make_screen(folder, console)
    if console.is_terminal and going():
        with Live(get_renderable=draw, console=console, screen=True, auto_refresh=False) as live:
            while going():
                live.refresh()
                time.sleep(EVERY_SECONDS)
    console.print(draw())


def make_screen(folder: Path, console: Console) -> tuple[Callable[[], RenderableType], Callable[[], bool]]:
    """Return two functions: one draws the screen, and one says whether a run is going."""
    from gdi.report.runs import find_run_folders, is_run_folder, read_run
    from gdi.report.terminal import dashboard, runs_table
    from gdi.runtime.lock import lock_holder

    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: name a run folder, or a folder of them.")

    def folders() -> list[Path]:
        return [folder] if is_run_folder(folder) else find_run_folders(folder)

    def height() -> int:
        return console.height if console.is_terminal else PLAIN_HEIGHT

    if not folders():
        raise UserError(f"{folder} has no run yet: start one with gdi train --run-dir.")

    def draw() -> RenderableType:
        runs = [read_run(found) for found in folders()]
        if len(runs) == 1:
            return dashboard(runs[0], console.width, height())
        return runs_table(runs, folder, console.width)

    return draw, lambda: any(lock_holder(found) is not None for found in folders())
