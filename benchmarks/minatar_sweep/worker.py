"""One job in a process of its own: trains, prints how many steps are done, and leaves its files in the run folder.

    python -m benchmarks.minatar_sweep.worker --agent gdi-i3 --game Breakout --seed 1 --steps 100000 --runs runs/minatar

is what the sweep starts. A GDI run that is stopped (SIGTERM) saves itself and goes on the next time; a peer's begins
anew. The evaluations are written last and whole: a run is finished when they are there. A worker whose sweep is gone
finds nobody to tell its steps to, and ends.
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

TELL_EVERY_SECONDS = 1.0


def run_job(job: Job, runs: Path, tell: Callable[[int], None]) -> bool:
    """Run one job to its end; false if it was stopped before."""
    folder = job.folder(runs)
    if job.agent.is_peer:
        rows = peer_rows(job, tell)
        # Only now: an interrupted peer leaves nothing behind.
        write_settings(folder / CONFIG, job.settings())
    else:
        from benchmarks.minatar_sweep.gdi_run import evaluation_rows, lambda_rows, train_gdi

        if not train_gdi(job, folder, tell):
            return False
        rows = evaluation_rows(job, folder)
        write_rows(folder / LAMBDA, LAMBDA_COLUMNS, lambda_rows(job, folder))
    write_rows(folder / EVALUATIONS, EVALUATION_COLUMNS, rows)
    return True


def peer_rows(job: Job, tell: Callable[[int], None]) -> list[Row]:
    from benchmarks.minatar_sweep.peers import train_peer

    rows = []
    for found in train_peer(job.agent.name, env_id(job.game), job.seed, job.steps, tell):
        returns = {"mean": found.returns.mean(), "min": found.returns.min(), "max": found.returns.max()}
        rows.append(evaluation_row(job, found.steps, found.seconds, returns, len(found.returns)))
    return rows


def teller() -> Callable[[int], None]:
    """Prints the steps at most once a second, and at once the first time."""
    last = -TELL_EVERY_SECONDS

    def tell(steps: int) -> None:
        nonlocal last
        if time.monotonic() - last >= TELL_EVERY_SECONDS:
            last = time.monotonic()
            print(steps, flush=True)

    return tell


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", required=True, choices=AGENTS)
    parser.add_argument("--game", required=True)
    parser.add_argument("--seed", required=True, type=int)
    parser.add_argument("--steps", required=True, type=int)
    parser.add_argument("--runs", required=True, type=Path)
    args = parser.parse_args()
    try:
        run_job(Job(AGENTS[args.agent], args.game, args.seed, args.steps), args.runs, teller())
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
