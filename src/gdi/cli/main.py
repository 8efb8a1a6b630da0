"""``gdi COMMAND ...``: import the module of one command, run it, and turn user errors into one line."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module

from gdi import __version__
from gdi.cli.parsing import printable
from gdi.errors import EnvironmentFaultError, SignalStop, UserError, did_you_mean

# Modules are imported lazily, because `gdi scores` and `gdi theory` must start without torch.
COMMANDS: dict[str, tuple[str, str]] = {
    "train": ("gdi.cli.train", "train an agent on an environment"),
    "actors": ("gdi.cli.actors", "change the number of actors of a run on Ray while it runs"),
    "evaluate": ("gdi.cli.evaluate", "play evaluation episodes with a trained agent"),
    "play": ("gdi.cli.play", "watch a trained agent play, or record a random one in an Atari game"),
    "envs": ("gdi.cli.envs", "list the Atari games with their random, human and record scores, and the protocols"),
    "bench": ("gdi.cli.bench", "measure training speed and what limits it"),
    "presets": ("gdi.cli.presets", "list the presets and scales, or the settings of one preset"),
    "watch": ("gdi.cli.watch", "follow a run while it trains, in the terminal or in a browser"),
    "report": ("gdi.cli.report", "write one page about a run, or about many"),
    "sweep": ("gdi.cli.sweep", "train many presets on many environments and seeds, and compare them"),
    "scores": ("gdi.cli.scores", "compare Atari scores with humans, world records and published agents"),
    "theory": ("gdi.cli.theory", "test the paper's theorems on random instances and search for counterexamples"),
    "algorithms": ("gdi.cli.algorithms", "derive the paper's taxonomy (GDI-I^n, GDI-H^n) of known algorithms"),
    "version": ("gdi.cli.version", "print the version"),
}
# The exit code that a shell reports for a program that a closed pipe ended: 128 + SIGPIPE.
CLOSED_PIPE = 141


def usage() -> str:
    """Return the list of commands, one line each."""
    width = max(map(len, COMMANDS))
    lines = [f"  gdi {name:<{width}}  {summary}" for name, (_, summary) in COMMANDS.items()]
    title = f"gdi {__version__}: Generalized Data Distribution Iteration"
    return "\n".join([title, "", *lines, "", "Run gdi COMMAND --help for details."])


def run_command(argv: list[str]) -> int:
    """Run one command and return its exit code."""
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(usage())
        return 0
    if argv[0] in ("-V", "--version"):
        argv = ["version"]
    name = argv[0]
    if name not in COMMANDS:
        raise UserError(f"unknown command {name!r}.{did_you_mean(name, COMMANDS)} Commands: {', '.join(COMMANDS)}.")
    code: int = import_module(COMMANDS[name][0]).run(argv[1:])
    return code


def _end_by(number: int, *, is_process: bool) -> int:
    """End the process by the signal that stopped its command.

    A shell ends a loop of commands only if a signal ended one of them. An exit code is not enough. If the process does
    more than this command, return the exit code that a shell reports for the signal.
    """
    if is_process:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)  # to this thread, which therefore goes no further
    return 128 + number


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code, which is 2 for bad input, explained in one line on stderr.

    Without ``argv`` the command is that of this process, which a signal may end.
    """
    try:
        try:
            return run_command(sys.argv[1:] if argv is None else argv)
        finally:
            if sys.stdout is not None:  # it is None when the shell closed it
                sys.stdout.flush()  # a closed pipe must raise here, not when the interpreter exits
    except UserError as error:
        print(f"gdi: error: {printable(str(error))}", file=sys.stderr)
        return 2
    except EnvironmentFaultError as error:
        print(f"{error.fault.trace}gdi: stopped: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("gdi: interrupted", file=sys.stderr)
        return _end_by(signal.SIGINT, is_process=argv is None)
    except SignalStop as stop:
        return _end_by(stop.number, is_process=argv is None)
    except BrokenPipeError:
        # The reader of the output, such as `head`, is gone. Leave quietly, as other Unix tools do.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE


if __name__ == "__main__":
    sys.exit(main())
