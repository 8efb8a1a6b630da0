"""One GDI run: trains or resumes it, and extracts its results from the run log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gdi
from benchmarks.minatar_sweep.agents import gdi_config
from benchmarks.minatar_sweep.jobs import Job
from benchmarks.minatar_sweep.records import LAMBDA_COLUMNS, Row, evaluation_row
from gdi.config import Config, FixedConfig
from gdi.index_space import make_index_space
from gdi.report.console import NullConsole
from gdi.runtime.run_log import read_metrics

LAMBDA_EVERY_STEPS = 20_000
Event = dict[str, Any]


class StepReporter(NullConsole):
    """A console that passes on a run's steps."""

    def __init__(self, report: Callable[[int], None]) -> None:
        self._report = report

    def event(self, event: Event) -> None:
        if event["kind"] in ("start", "progress"):
            self._report(event["steps"])


def train_gdi(job: Job, folder: Path, report: Callable[[int], None]) -> bool:
    """Train, or resume a stopped run; return False if it was stopped again."""
    config = gdi_config(job.agent, job.game, job.seed, job.steps)
    return gdi.train(config, folder, resume=True, console=StepReporter(report)).finished


def evaluation_rows(job: Job, folder: Path) -> list[Row]:
    return [
        evaluation_row(job, event["steps"], event["clock"]["seconds"], event, event["episodes"])
        for event in read_metrics(folder, "evaluation")
    ]


def lambda_rows(job: Job, folder: Path) -> list[Row]:
    config = gdi_config(job.agent, job.game, job.seed, job.steps)
    rows = []
    for event in subsample(read_metrics(folder, "train"), LAMBDA_EVERY_STEPS):
        known = {**controller_columns(event, config), **health(event)}
        row = {"agent": job.agent.name, "game": job.game, "seed": str(job.seed), "steps": str(event["steps"])}
        numbers = {name: known.get(name) for name in LAMBDA_COLUMNS if name not in row}
        rows.append({**row, **{name: "" if x is None else f"{x:.4g}" for name, x in numbers.items()}})
    return rows


def subsample(events: list[Event], every_steps: int) -> Iterator[Event]:
    """Return the first line past each multiple of ``every_steps``, and the last line."""
    kept = 0
    for event in events:
        if event["steps"] // every_steps > kept // every_steps or event is events[-1]:
            kept = event["steps"]
            yield event


def controller_columns(event: Event, config: Config) -> dict[str, float]:
    """Return per axis the best block's center, the mean proposal, and the top block's probability.

    A fixed axis has its value. Random Selection has no best block and nothing to record.
    """
    space = make_index_space(config.index_space)
    searched = {axis.name: axis for axis in space.axes}
    found: dict[str, float] = {}
    for name, held in space.by_name(space.base).items():
        probabilities = event.get(f"controller/{name}/block_probability")
        if name not in searched or isinstance(config.controller, FixedConfig):
            found |= {f"best_{name}": held, f"mean_{name}": held}
        elif probabilities is not None:
            axis = searched[name]
            middles = [axis.to_value(axis.low + (i + 0.5) * axis.block_width) for i in range(axis.num_blocks)]
            mean = sum(p * middle for p, middle in zip(probabilities, middles, strict=True)) / sum(probabilities)
            found |= {
                f"best_{name}": middles[int(event[f"controller/{name}/best_block"])],
                f"mean_{name}": mean,
                f"top_probability_{name}": event[f"controller/{name}/top_block_probability"],
            }
    return found


def health(event: Event) -> dict[str, float | None]:
    return {
        "entropy": event.get("policy/entropy"),
        "ratio_mean": event.get("policy/ratio_mean"),
        "ratio_clip_fraction": event.get("policy/ratio_clip_fraction"),
        "advantage_scale": event.get("policy/advantage_scale"),
        "value_mean": event.get("value/mean"),
        "value_target_mean": event.get("value/target_mean"),
        "parameter_lag_updates": event.get("actor/parameter_lag_updates"),
        "skipped_updates": event["learner/skipped_total"],
    }
