"""The benchmark's CSV files from the folder of its sweep.

python -m benchmarks.minatar_sweep.export runs/minatar --results runs/minatar/results
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.minatar_sweep.agents import AGENTS, GAMES, Agent, env_id
from benchmarks.minatar_sweep.records import (
    EVALUATION_COLUMNS,
    LAMBDA_COLUMNS,
    Row,
    check_settings,
    evaluation_row,
    files_of,
    merge,
    read_rows,
    shared_settings,
    write_rows,
    write_settings,
)
from gdi.cli.parsing import OneLineParser
from gdi.config import Config, FixedConfig
from gdi.errors import UserError
from gdi.index_space import make_index_space
from gdi.runtime.run_log import read_metrics
from gdi.sweep.jobs import Job, config_of
from gdi.sweep.results import SweepFolder
from gdi.sweep.status import CONFIG

PROG = "python -m benchmarks.minatar_sweep.export"
LAMBDA_EVERY_STEPS = 20_000
GAME_OF = {env_id(game): game for game in GAMES}
Event = dict[str, Any]


def export(sweep: Path, results: Path) -> list[Path]:
    """Write the files of every agent that has finished runs; rows of other runs stay. Return the written paths."""
    folder = SweepFolder(sweep)
    finished = [job for job in folder.jobs() if folder.status(job).word == "finished" and job.env in GAME_OF]
    written = []
    for agent in AGENTS.values():
        if own := [job for job in finished if job.agent == agent.planned]:
            written += export_agent(agent, own, folder, results)
    return written


def export_agent(agent: Agent, jobs: Sequence[Job], folder: SweepFolder, results: Path) -> list[Path]:
    """Write an agent's three files. Raise UserError if results of other settings are there."""
    evaluations, lambdas, shared = files_of(results, agent.name)
    settings = shared_settings(json.loads((jobs[0].folder(folder.path) / CONFIG).read_text(encoding="utf-8")))
    check_settings(shared, settings)
    results.mkdir(parents=True, exist_ok=True)
    write_settings(shared, settings)
    new = [row for job in jobs for row in evaluation_rows(agent, job, folder)]
    write_rows(evaluations, EVALUATION_COLUMNS, merge(read_rows(evaluations, EVALUATION_COLUMNS), new))
    if agent.is_peer:
        return [shared, evaluations]
    new = [row for job in jobs for row in lambda_rows(agent, job, folder)]
    write_rows(lambdas, LAMBDA_COLUMNS, merge(read_rows(lambdas, LAMBDA_COLUMNS), new))
    return [shared, evaluations, lambdas]


def evaluation_rows(agent: Agent, job: Job, folder: SweepFolder) -> Iterator[Row]:
    for line in folder.status(job).evaluations:
        run = (agent.name, GAME_OF[job.env], job.seed, job.steps)
        yield evaluation_row(run, line["steps"], line["clock"]["seconds"], line, line["episodes"])


def lambda_rows(agent: Agent, job: Job, folder: SweepFolder) -> Iterator[Row]:
    config = config_of(job)
    for event in subsample(read_metrics(job.folder(folder.path), "train"), LAMBDA_EVERY_STEPS):
        known = {**controller_columns(event, config), **health(event)}
        row = {"agent": agent.name, "game": GAME_OF[job.env], "seed": str(job.seed), "steps": str(event["steps"])}
        numbers = {name: known.get(name) for name in LAMBDA_COLUMNS if name not in row}
        yield {**row, **{name: "" if x is None else f"{x:.4g}" for name, x in numbers.items()}}


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


def main(argv: list[str] | None = None) -> int:
    parser = OneLineParser(prog=PROG, description="The benchmark's CSV files from the folder of its sweep.")
    parser.add_argument("sweep", type=Path, help="folder of the sweep")
    parser.add_argument("--results", type=Path, required=True, help="folder for the CSV files")
    try:
        args = parser.parse_args(argv)
        for path in export(args.sweep, args.results):
            print(path)
    except UserError as error:
        print(f"{PROG}: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
