"""The CSV file of the systems' runs, and the tables that are made of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks import system_runs, system_tables

import gdi
from gdi.sweep.files import read_csv, write_csv
from gdi.sweep.results import SweepFolder


def test_every_finished_run_is_one_row_and_other_rows_stay(whole_sweep: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs.csv"
    other = dict.fromkeys(system_runs.COLUMNS, "") | {"env": "other", "preset": "dqn", "seed": "7"}
    write_csv(out, system_runs.COLUMNS, [other])
    for _ in range(2):  # the second time there is nothing to add
        assert system_runs.main([str(whole_sweep), "-o", str(out)]) == 0
    rows = read_csv(out)
    assert other in rows
    folder = SweepFolder(whole_sweep)
    jobs = folder.jobs()
    assert len(rows) == 1 + len(jobs)
    for row in rows[:-1]:
        job = next(job for job in jobs if (job.preset, str(job.seed)) == (row["preset"], row["seed"]))
        last = folder.status(job).evaluations[-1]
        assert [float(value) for value in row["returns"].split()] == last["returns"]
        greedy = gdi.load(job.folder(whole_sweep)).evaluate(2, system_runs.GREEDY_SEED, greedy=True)
        assert float(row["greedy_mean"]) == pytest.approx(np.mean(greedy.returns))
        lines = (job.folder(whole_sweep) / "episodes.csv").read_text().splitlines()[1:]
        assert float(row["training_mean"]) == pytest.approx(np.mean([float(x.split(",")[-3]) for x in lines]), rel=1e-4)


def test_a_table_has_the_mean_and_the_extremes_of_each_way_to_explore(tmp_path: Path) -> None:
    scores = {"": (1.0, 2.0, 6.0), "bandit-epsilon": (4.0, 5.0, 6.0), "uniform-epsilon": (0.0, 0.5, 1.0)}
    rows = [
        {
            **dict.fromkeys(system_runs.COLUMNS, ""),
            **{"env": "MinAtar/Breakout-v0", "preset": "dqn", "variant": variant, "seed": str(seed)},
            **{"steps": "1000000", "mean": str(mean), "greedy_mean": "8", "training_mean": "7"},
        }
        for variant, means in scores.items()
        for seed, mean in enumerate(means)
    ]
    write_csv(tmp_path / "systems" / "runs.csv", system_runs.COLUMNS, rows)
    text = "\n\n".join(system_tables.pages(tmp_path))
    assert "| dqn | Breakout | ε as published | 3.0 (1.0 to 6.0) | 8.0 (8.0 to 8.0) | 7.0 (7.0 to 7.0) |" in text
    assert "| dqn | Breakout | ε chosen by bandits | 5.0 (4.0 to 6.0) |" in text
    assert "| dqn | Breakout | ε drawn uniformly | 0.5 (0.0 to 1.0) |" in text
    assert "| Breakout | 3.0 (1.0 to 6.0) | – | 7.0 | 9.2 |" in text  # Young and Tian's DQN has about 9.2
    assert "Asterix | ε" not in text
