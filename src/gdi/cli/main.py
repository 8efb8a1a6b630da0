"""``gdi COMMAND ...``: finds the command's module, imports only that one, and turns user errors into one line."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from gdi import __version__
from gdi.errors import UserError, nearest

# Imported lazily: `gdi scores` and `gdi theory` must start without torch.
COMMANDS: dict[str, tuple[str, str]] = {
    "train": ("gdi.cli.train", "train an agent on an environment"),
    "actors": ("gdi.cli.actors", "change the number of actors of a run on Ray while it runs"),
    "evaluate": ("gdi.cli.evaluate", "play evaluation episodes with a trained agent"),
    "play": ("gdi.cli.play", "watch a random agent play an Atari game"),
    "envs": ("gdi.cli.envs", "list the Atari games with their random, human and record scores, and the protocols"),
    "bench": ("gdi.cli.bench", "measure training speed and what limits it"),
    "presets": ("gdi.cli.presets", "list the presets and scales, and what differs between them"),
    "scores": ("gdi.cli.scores", "judge Atari scores against humans, world records and published agents"),
    "theory": ("gdi.cli.theory", "execute the paper's theorems, and break them on purpose"),
    "algorithms": ("gdi.cli.algorithms", "the taxonomy GDI-I^n / GDI-H^n, computed"),
}


def usage() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  gdi {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items()]
    return "\n".join(
        [f"gdi {__version__}: Generalized Data Distribution Iteration", "", *lines, "", "gdi COMMAND --help says more."]
    )


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code is 0, or 2 for bad input, which is explained in one line on stderr."""
    argv = sys.argv[1:] if argv is None else argv
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if argv[0] in ("-V", "--version"):
        print(__version__)
        return 0
    try:
        if argv[0] not in COMMANDS:
            known = ", ".join(COMMANDS)
            raise UserError(f"unknown command {argv[0]!r}.{nearest(argv[0], COMMANDS)} Commands: {known}.")
        code: int = import_module(COMMANDS[argv[0]][0]).run(argv[1:])
        return code
    except UserError as error:
        print(f"gdi: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("gdi: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output (`| head`) has gone; leave quietly, as any Unix tool does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
