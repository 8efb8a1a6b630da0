"""One job in its own process: trains, prints the steps done, and writes its files to the run folder.

    python -m benchmarks.minatar_sweep.worker --agent gdi-i3 --game Breakout --seed 1 --steps 100000 --runs runs/minatar

is the command that the sweep starts. A stopped GDI run (SIGTERM) saves itself and continues the next time. A peer's
run starts again. The evaluations are written last and atomically, so a run is finished once they exist. If its sweep
is gone, a worker cannot report its steps and ends.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.minatar_sweep.agents import AGENTS, env_id
from benchmarks.minatar_sweep.jobs import CONFIG, EVALUATIONS, LAMBDA, Job
from benchmarks.minatar_sweep.records import (
    EVALUATION_COLUMNS,
    LAMBDA_COLUMNS,
    Row,
    evaluation_row,
    write_rows,
    write_settings,
)
from gdi.errors import UserError

REPORT_EVERY_SECONDS = 1.0


def run_job(job: Job, runs: Path, report: Callable[[int], None]) -> bool:
    """Run one job to its end; return False if it was stopped before."""
    folder = job.folder(runs)
    if job.agent.is_peer:
        rows = peer_rows(job, report)
        # Create the folder only now, because an interrupted peer leaves nothing behind.
        write_settings(folder / CONFIG, job.settings())
    else:
        from benchmarks.minatar_sweep.gdi_run import evaluation_rows, lambda_rows, train_gdi

        if not train_gdi(job, folder, report):
            return False
        rows = evaluation_rows(job, folder)
        write_rows(folder / LAMBDA, LAMBDA_COLUMNS, lambda_rows(job, folder))
    write_rows(folder / EVALUATIONS, EVALUATION_COLUMNS, rows)
    return True


def peer_rows(job: Job, report: Callable[[int], None]) -> list[Row]:
    from benchmarks.minatar_sweep.peers import train_peer

    rows = []
    for found in train_peer(job.agent.name, env_id(job.game), job.seed, job.steps, report):
        returns = {"mean": found.returns.mean(), "min": found.returns.min(), "max": found.returns.max()}
        rows.append(evaluation_row(job, found.steps, found.seconds, returns, len(found.returns)))
    return rows


def make_reporter() -> Callable[[int], None]:
    """Return a function that prints the steps, immediately at first and then at most once per second."""
    last = -REPORT_EVERY_SECONDS

    def report(steps: int) -> None:
        nonlocal last
        if time.monotonic() - last >= REPORT_EVERY_SECONDS:
            last = time.monotonic()
            print(steps, flush=True)

    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", required=True, choices=AGENTS)
    parser.add_argument("--game", required=True)
    parser.add_argument("--seed", required=True, type=int)
    parser.add_argument("--steps", required=True, type=int)
    parser.add_argument("--runs", required=True, type=Path)
    args = parser.parse_args()
    try:
        run_job(Job(AGENTS[args.agent], args.game, args.seed, args.steps), args.runs, make_reporter())
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
