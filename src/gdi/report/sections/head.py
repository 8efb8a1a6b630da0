"""The first section: what was trained, how far it is, and the line that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from gdi.clock import duration
from gdi.config.json import config_from_json, kinds
from gdi.config.whole import Config, differences
from gdi.errors import UserError
from gdi.presets import make_config
from gdi.report.document import Block, Facts, Section, TableBlock, Text
from gdi.report.log import number
from gdi.report.material import Material
from gdi.report.runs import CONFIG, Run
from gdi.report.verdicts import listed
from gdi.runtime.run_log import METRICS
from gdi.scores.tables import Column, Table

MOST_ROWS = 400
MOST_NOTICES = 5


def head(material: Material) -> Section:
    """Return the facts of one run, or a table of several."""
    if len(material.runs) == 1:
        blocks: list[Block] = list(_one_run(material.runs[0]))
    else:
        blocks = [Facts(tuple(_shared_facts(material))), TableBlock(_table(material))]
    return Section("head", "The run" if len(material.runs) == 1 else "The runs", tuple(blocks))


def _one_run(run: Run) -> Iterator[Block]:
    yield Facts(tuple(_facts(run)))
    for note in run.notes:
        yield Text(note, "warning")
    for notice in run.notices[-MOST_NOTICES:]:
        yield Text(notice, "warning")
    line = reproducing_line(run)
    if line:
        yield Text("This line trains the same run again:")
        yield Text(line, "code")
    elif run.settings.own_classes:
        yield Text(_why_no_line(run), "note")


def _why_no_line(run: Run) -> str:
    """Return why no command line trains a run with classes of its user."""
    own = [name.replace("_", " ") for name in run.settings.own_classes]
    whose = f"its {listed(own)} {'is your own class' if len(own) == 1 else 'are your own classes'}"
    return f"No command line trains this run again, because {whose}. Train it from Python."


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    settings = run.settings
    yield "task", run.env or "unknown"
    yield "agent", f"{settings.agent}, at scale {settings.scale}" if settings.preset else run.agent or "unknown"
    yield "seed", "unknown" if settings.seed is None else str(settings.seed)
    yield "state", run.state.text
    yield from _progress_facts(run)
    yield "run folder", str(run.folder)
    if (written := last_written(run)) is not None:
        yield "last log line", written.isoformat(sep=" ", timespec="seconds")


def _progress_facts(run: Run) -> Iterator[tuple[str, str]]:
    if not run.train:
        return
    last = run.train[-1]
    if "frames" in last:
        yield "frames", f"{last['frames']:,}"
    if "updates" in last:
        yield "updates", f"{last['updates']:,}"
    seconds = number(last["clock"].get("seconds"))
    if seconds > 0:
        yield "training time", duration(seconds)
        yield "speed", f"{last['steps'] / seconds:,.0f} steps/s over the whole run"


def _shared_facts(material: Material) -> Iterator[tuple[str, str]]:
    yield "runs", f"{len(material.runs):,} of {len(material.agents)} agents in {len(material.envs)} environments"
    words = [run.state.word for run in material.runs]
    yield "state", ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    yield "seeds", ", ".join(sorted({str(run.settings.seed) for run in material.runs}, key=lambda s: (len(s), s)))
    damaged = sum(bool(run.notes) for run in material.runs)
    if damaged:
        yield "damaged", f"{damaged} runs have lines or settings that cannot be read; the table says which"


def _table(material: Material) -> Table:
    columns = (
        Column("run", "run"),
        Column("env", "environment"),
        Column("agent", "agent"),
        Column("seed", "seed", ".0f"),
        Column("state", "state"),
        Column("last", "last evaluation", ",.2f"),
        Column("notes", "remarks"),
    )
    rows = tuple(
        (
            run.name,
            run.env,
            material.agent_of(run),
            run.settings.seed,
            run.state.text,
            number(run.evaluations[-1]["mean"]) if run.evaluations else None,
            " ".join(run.notes),
        )
        for run in material.runs[:MOST_ROWS]
    )
    left = len(material.runs) - len(rows)
    return Table("runs", "All runs", columns, rows, notes=(f"{left} more runs are not listed.",) if left else ())


def last_written(run: Run) -> datetime | None:
    """Return when the log last grew."""
    try:
        return datetime.fromtimestamp((run.folder / METRICS).stat().st_mtime).astimezone()
    except OSError:
        return None


def reproducing_line(run: Run) -> str:
    """Return the command that trains this run, or an empty text if the settings are not those of a known preset."""
    try:
        config = config_from_json((run.folder / CONFIG).read_text(encoding="utf-8"))
        parent = make_config(config.preset, config.env.id, scale=config.scale, steps=config.steps, seed=config.seed)
        options = list(_options(parent, config))
    except (UserError, OSError, ValueError, TypeError, AttributeError):
        return ""
    words = ["gdi", "train", config.preset, "--env", config.env.id, "--scale", config.scale]
    return shlex.join([*words, "--steps", str(config.steps), "--seed", str(config.seed), *options])


def _options(parent: Config, config: Config) -> Iterator[str]:
    """Yield the options that turn the preset into this config."""
    changed = [name for name, _, _ in differences(parent, config) if "." not in name]
    for section in changed:  # another kind of section
        kind = getattr(config, section).kind
        yield from (f"--{section.replace('_', '-')}", kind)
        parent = _with_section(parent, section, kind)
    for name, _, value in differences(parent, config):
        yield from _option(name.replace("_", "-"), value)


def _with_section(config: Config, section: str, kind: str) -> Config:
    return replace(config, **{section: kinds(section)[kind]()})


def _option(name: str, value: object) -> list[str]:
    if isinstance(value, bool):
        place, _, field = name.rpartition(".")
        return [f"--{name}"] if value else [f"--{place}.no-{field}"]
    if isinstance(value, tuple):
        return [f"--{name}", *map(str, value)]
    return [f"--{name}", str(value)]
