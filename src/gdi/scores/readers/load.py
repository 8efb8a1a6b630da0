"""Combines score files and run folders into agents."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gdi.errors import UserError
from gdi.scores.agents import Agent, score_matrix
from gdi.scores.readers.csv_files import CsvFile
from gdi.scores.readers.entries import printable_name
from gdi.scores.readers.json_files import JsonFile
from gdi.scores.readers.run_folders import CHANGED, read_run


@dataclass(frozen=True)
class LoadedAgents:
    """The agents of all inputs, and remarks for the reader of the report."""

    agents: tuple[Agent, ...]
    notes: tuple[str, ...]


@dataclass
class _Inputs:
    """What the inputs have in common: scores by agent and game, frames and protocols by agent, and remarks."""

    scores: dict[str, dict[str, array[float]]] = field(default_factory=dict)
    frames: dict[str, set[float]] = field(default_factory=dict)
    protocols: dict[str, set[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, agent: str, game: str, scores: Sequence[float]) -> None:
        self.scores.setdefault(agent, {}).setdefault(game, array("d")).extend(scores)


def load_agents(inputs: Sequence[str], frames: float | None = None, *, mix_protocols: bool = False) -> LoadedAgents:
    """Read files and run folders.

    Raise UserError if protocols of runs differ, or were changed, unless ``mix_protocols``.
    Each file is an agent named after it. Run folders together are the agent ``runs``. ``NAME=PATH`` names the agent,
    and inputs with the same name are pooled as further seeds.
    """
    found = _Inputs()
    for given in inputs:
        name, path = _split_name(given)
        if path.is_dir():
            _add_run(found, path, printable_name(name or "runs"))
        else:
            _add_file(found, path, name or path.stem)
    agents = []
    for agent, games in found.scores.items():
        seen = found.frames.get(agent, set())
        if frames is None and len(seen) > 1:
            found.notes.append(f"{agent}: its runs have different numbers of frames. The largest is used.")
        agents.append(Agent(agent, score_matrix(games), frames if frames is not None else max(seen, default=None)))
    if not mix_protocols:
        _check_protocols(found.protocols)
    for agent, names in found.protocols.items():
        mixed = ": scores of different protocols are not comparable" if len(names) > 1 else ""
        found.notes.append(f"{agent}: protocol {', '.join(sorted(names))}{mixed}.")
    return LoadedAgents(tuple(agents), tuple(found.notes))


def _add_run(found: _Inputs, folder: Path, agent: str) -> None:
    run = read_run(folder)
    found.add(agent, run.game, [run.score])
    found.frames.setdefault(agent, set()).add(run.frames)
    found.protocols.setdefault(agent, set()).add(run.protocol or "unknown")


def _add_file(found: _Inputs, path: Path, agent: str) -> None:
    text = _read_text(path)
    is_json = path.suffix.lower() == ".json" or text.lstrip()[0] in "{["
    file = JsonFile(path, agent) if is_json else CsvFile(path, agent)
    file.read(text)
    scores, outside = file.entries.by_agent(), file.entries.outside
    if outside:
        found.notes.append(f"{path}: dropped {', '.join(outside)}: not among the benchmark's 57 games.")
    if file.ignored:
        found.notes.append(f"{path}: only the score column is read. Ignored: {', '.join(file.ignored)}.")
    if not scores:
        raise UserError(
            f"{path} contains no score." if not outside else f"{path} contains none of the benchmark's 57 games."
        )
    for name, games in scores.items():
        for game, values in games.items():
            found.add(name, game, values)


def _check_protocols(protocols: dict[str, set[str]]) -> None:
    """Raise UserError if scores were made under different protocols, or under none of the published ones."""
    found = sorted(set().union(*protocols.values()))
    changed = [name for name in found if CHANGED in name]
    if changed:
        raise UserError(
            f"a run has the protocol {changed[0]}, so its normalized scores mean little: drop it, or add "
            "--mix-protocols."
        )
    if len(found) > 1:
        raise UserError(
            f"these runs have the protocols {', '.join(found)}, whose scores are not comparable: judge them one by "
            "one, or add --mix-protocols."
        )


def _split_name(given: str) -> tuple[str | None, Path]:
    name, equals, rest = given.partition("=")
    if (
        not given.strip()
        or "\0" in given
        or any(len(part.encode(errors="replace")) > 255 for part in Path(given).parts)
    ):
        raise UserError(f"{given[:60]!r} is not a path of a file or a folder.")
    if equals and name and rest and not Path(given).exists():
        return name, Path(rest)
    return None, Path(given)


def _read_text(path: Path) -> str:
    """Return the text of a file that is not empty."""
    if path.is_fifo() and path.parts[1:2] not in (("dev",), ("proc",)):  # there a shell has made it, as in <(...)
        raise UserError(f"{path}: a pipe without a writer waits forever: give a file.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file or run folder.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file: use CSV or JSON in UTF-8.") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}.") from None
    if not text.strip():
        raise UserError(f"{path}: the file is empty.")
    return text
