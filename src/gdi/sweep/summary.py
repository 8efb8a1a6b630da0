"""The tables and figures at the end of a sweep, and what its status is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from gdi.errors import UserError
from gdi.scores import metrics
from gdi.scores.runs import Run, estimate, score_matrix
from gdi.sweep.files import FIGURES
from gdi.sweep.jobs import RUNS, Job
from gdi.sweep.results import SweepFolder, in_order
from gdi.sweep.status import Status

Found = Sequence[tuple[Job, Status]]


def score_runs(found: Found) -> list[Run]:
    """Return the finished runs, for the statistics of ``gdi.scores``."""
    return [
        Run(
            agent=job.agent,
            game=job.env,
            seed=job.seed,
            training_steps=job.steps,
            steps=np.array([line["steps"] for line in status.evaluations], float),
            scores=np.array([line["mean"] for line in status.evaluations], float),
            seconds=np.array([line["clock"]["seconds"] for line in status.evaluations], float),
        )
        for job, status in found
        if status.word == "finished"
    ]


def score_table(found: Found) -> Table:
    """Return the mean final score per environment and agent, with its interval over seeds."""
    runs = score_runs(found)
    table = Table(title="Final scores", title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("environment", overflow="fold")
    table.add_column("agent", overflow="fold")
    for heading in ("runs", "mean [95% interval]", "diverged"):
        table.add_column(heading, justify="right")
    for env, agent in dict.fromkeys((job.env, job.agent) for job, _ in found):
        own = [status for job, status in found if (job.env, job.agent) == (env, agent)]
        finished = sum(status.word == "finished" for status in own)
        diverged = sum(status.word == "diverged" for status in own)
        score = estimate(metrics.mean, score_matrix(runs, agent, [env]))
        table.add_row(env, agent, f"{finished} of {len(own)}", score.text(), str(diverged or ""))
    return table


def print_results(folder: SweepFolder, console: Console) -> None:
    """Print the table of scores, and say where the files are."""
    found = [(job, folder.status(job)) for job in in_order(folder.plan())]
    console.print(score_table(found))
    if any(status.word == "diverged" for _, status in found):
        console.print("Diverged runs are not in the means.", highlight=False)


def draw_figures(folder: Path) -> Path | None:
    """Draw the figures of ``gdi report`` about all runs; return their folder, or None without matplotlib."""
    from gdi.report.collect import collect_runs
    from gdi.report.png import write_pictures
    from gdi.report.report import report

    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return None
    try:
        return write_pictures(report(collect_runs([folder / RUNS])), folder / FIGURES)
    except OSError as error:
        raise UserError(f"{folder / FIGURES} cannot be written: {error.strerror}.") from None


def status_table(folder: SweepFolder) -> Table:
    """Return how many jobs of each agent have ended, run now, wait, and failed."""
    table = Table(box=SIMPLE_HEAD)
    table.add_column("environment", overflow="fold")
    table.add_column("agent", overflow="fold")
    words = ("finished", "diverged", "running", "started", "failed", "waiting")
    for heading in words:
        table.add_column(heading, justify="right")
    jobs = in_order(folder.plan())
    states = {job: job_state(folder, job) for job in jobs}
    for env, agent in dict.fromkeys((job.env, job.agent) for job in jobs):
        own = [states[job] for job in jobs if (job.env, job.agent) == (env, agent)]
        table.add_row(env, agent, *(str(own.count(word) or "") for word in words))
    return table


def job_state(folder: SweepFolder, job: Job) -> str:
    """Return the state of a job in one word."""
    status = folder.status(job)
    if status.is_result:
        return status.word
    if not folder.claims.state(job.name).is_free:
        return "running"
    if folder.failure(job) is not None:
        return "failed"
    return "started" if status.word == "started" else "waiting"
