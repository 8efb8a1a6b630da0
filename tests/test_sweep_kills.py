"""SIGKILL of drivers and workers at random moments: no row is lost or doubled, and no job is trained twice.

GDI_KILLS=100 python -m pytest tests/test_sweep_kills.py
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from sweep_runs import (
    SWEEP_STEPS,
    DriverProcess,
    begin_sweep,
    check_whole,
    drive,
    kill,
    logged_lines,
    rows,
    wait_for_workers,
    wait_until,
    workers,
    write_plan,
)

KILLS = int(os.environ.get("GDI_KILLS", "2"))
WAYS = ("driver", "workers", "both")
# Kills of one sweep, before it may finish.
KILLS_PER_SWEEP = 2

pytestmark = pytest.mark.kill


def check_partial(sweep: Path, whole: Path) -> None:
    """Check that what a killed sweep has published so far is true."""
    if (sweep / "results.csv").exists():
        expected, found = rows(whole / "results.csv"), rows(sweep / "results.csv")
        assert all(row in expected for row in found)
        assert len({tuple(row.values()) for row in found}) == len(found)


@pytest.mark.parametrize("number", range(-(-KILLS // KILLS_PER_SWEEP)))
def test_a_killed_sweep_finishes_as_if_never_killed(number: int, whole_sweep: Path, tmp_path: Path) -> None:
    rng = random.Random(number)
    sweep = tmp_path / "sweep"
    plan = write_plan(tmp_path, SWEEP_STEPS)
    begin_sweep(plan, sweep)
    words = [str(plan), "--out", str(sweep), "-j", "2", "--retry", "9"]
    for turn in range(KILLS_PER_SWEEP):
        driver = DriverProcess(*words)
        wait_for_workers(sweep, driver)
        lines = int(logged_lines(whole_sweep) * rng.uniform(0.9 * turn, 0.9 * (turn + 1)) / KILLS_PER_SWEEP)
        wait_until(lambda lines=lines: logged_lines(sweep) >= lines, f"{lines} lines")
        time.sleep(rng.uniform(0.0, 0.2))
        way = WAYS[(number + turn) % len(WAYS)]
        kill([*workers(sweep)] * (way != "driver") + [driver.pid] * (way != "workers"))
        if way != "workers":
            driver.end()
            check_partial(sweep, whole_sweep)
        else:
            time.sleep(rng.uniform(0.0, 1.0))
            kill([driver.pid])
            driver.end()
    code, out, err = drive(*words)
    assert code == 0, out + err
    check_whole(sweep, whole_sweep)
