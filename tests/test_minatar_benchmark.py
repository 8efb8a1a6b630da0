"""The MinAtar benchmark: its plan, its records, which lose and mix nothing, and statistics with known answers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.minatar_sweep import ablation, agents, analysis, export, figures, stats, tables
from benchmarks.minatar_sweep.agents import AGENTS, GAMES, PLAN, jobs_of
from benchmarks.minatar_sweep.records import (
    EVALUATION_COLUMNS,
    LAMBDA_COLUMNS,
    Row,
    check_settings,
    evaluation_row,
    merge,
    read_rows,
    read_settings,
    shared_settings,
    write_rows,
    write_settings,
)

from gdi.config import config_to_json, differences
from gdi.errors import UserError
from gdi.presets import make_config
from gdi.scores import metrics
from gdi.scores import runs as scored
from gdi.scores.runs import Run
from gdi.sweep.files import write_whole
from gdi.sweep.jobs import Job, all_jobs, check_plan, config_of
from gdi.sweep.plan import plan_of, read_plan
from gdi.sweep.plan_text import plan_to_toml
from gdi.sweep.record import first_difference, settings_of

# The agents whose committed settings were written in format 1.
OF_FORMAT_1 = {name for name, agent in AGENTS.items() if not agent.is_peer and name != "gdi-i3"}
COMMITTED = Path(__file__).parents[1] / "docs" / "results" / "minatar"


@dataclass(frozen=True)
class One:
    """A run of the records."""

    agent: str = "gdi-i3"
    game: str = "Breakout"
    seed: int = 1
    steps: int = 3000


def job(agent: str = "gdi-i3", game: str = "Breakout", seed: int = 1, steps: int = 3000) -> One:
    return One(agent, game, seed, steps)


def rows_of(one: One, means: tuple[float, ...] = (1.0, 2.0)) -> list[Row]:
    """As many evaluations as means, evenly spaced, the last at the end."""
    run = (one.agent, one.game, one.seed, one.steps)
    return [
        evaluation_row(run, one.steps * (i + 1) // len(means), 10.0 * (i + 1), {"mean": m, "min": 0, "max": 9}, 32)
        for i, m in enumerate(means)
    ]


# ------------------------------------------------------------------------------------------------- the plan


def test_the_plan_is_what_was_promised() -> None:
    jobs = all_jobs(read_plan(PLAN))
    seeds = {name: {one.seed for one in jobs_of(agent)} for name, agent in AGENTS.items()}
    five = {name for name, found in seeds.items() if found == {0, 1, 2, 3, 4}}
    assert five == {"gdi-i3", "gdi-i3-q10", "gdi-h3", "ppo"}
    assert {name: len(found) for name, found in seeds.items()} == {agent.name: agent.seeds for agent in AGENTS.values()}
    assert len(jobs) == len(set(jobs)) == 5 * sum(map(len, seeds.values())) == 190
    assert {one.agent for one in jobs} == {agent.planned for agent in AGENTS.values()}
    assert {one.env for one in jobs} == set(export.GAME_OF)


@pytest.mark.parametrize("name", ["minatar.toml", "minatar-quick.toml"])
def test_the_plans_can_be_run(name: str) -> None:
    jobs = check_plan(read_plan(PLAN.with_name(name)))
    assert {one.agent for one in jobs} <= {agent.planned for agent in AGENTS.values()}
    assert all(0 < one.settings["evaluation.every_steps"] <= one.steps // 4 for one in jobs)


def test_gdi_runs_with_its_presets_and_one_thread() -> None:
    for agent in AGENTS.values():
        if agent.is_peer:
            continue
        preset = agent.planned.partition("+")[0]
        config = agents.live_config(agent)
        plain = make_config(preset, config.env.id, scale="minatar", steps=10**6)
        changed = {name for name, _, _ in differences(plain, config)}
        allowed = {"run.threads", "run.device", "run.keep_checkpoints", "run.states_per_stage"}
        own = set() if agent.name == "gdi-i3" else {"learner.q_loss_scale"}
        assert changed == allowed | own | ({"learner.reward_scales"} if agent.name == "fixed-unscaled" else set())
        assert config.run.threads == 1
    assert agents.live_config(AGENTS["fixed-unscaled"]).learner.reward_scales == (1.0,)


def today(name: str) -> dict[str, Any]:
    """The settings that all runs of an agent share now."""
    return shared_settings(dict(settings_of(jobs_of(AGENTS[name])[0], {})))


@pytest.mark.parametrize("name", sorted(OF_FORMAT_1))
def test_settings_of_format_1_are_those_of_today(name: str, tmp_path: Path) -> None:
    """The committed results go on: no setting differs, and none escapes the comparison by its new place."""
    path = COMMITTED / f"{name}.json"
    assert "format" not in json.loads(path.read_text())
    assert read_settings(path) == today(name)
    stored = json.loads(path.read_text())
    stored["learner"]["replay"] = 3
    (tmp_path / "changed.json").write_text(json.dumps(stored))
    changed = read_settings(tmp_path / "changed.json")
    assert changed is not None
    assert first_difference(changed, today(name)) == ("data.replay", 3, 8)


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_settings_of_the_peers_are_those_of_today(name: str) -> None:
    stored, now = read_settings(COMMITTED / f"{name}.json"), today(name)
    assert stored is not None
    assert {**stored["learner"], **stored["network"]}.items() == {
        key: value for key, value in now["learner"].items() if key != "kind"
    }.items()
    assert now["env"]["num_envs"] == stored["env"]["num_envs"]
    assert {key: now["evaluation"][key] for key in stored["evaluation"]} == stored["evaluation"]
    assert now["steps"] == stored["steps"]


def test_the_kind_of_controller_is_a_setting() -> None:
    fixed, random = (today(name)["controller"] for name in ("fixed", "random"))
    assert first_difference(fixed, random) == ("kind", "fixed", "uniform")


# ------------------------------------------------------------------------------------------------- files of results


def test_merge_loses_and_doubles_no_row() -> None:
    one, two, three = job(seed=1), job(seed=2), job(game="Asterix", seed=1)
    old = [*rows_of(one), *rows_of(two)]
    again = rows_of(two, (5.0, 6.0, 7.0))
    merged = merge(old, [*again, *rows_of(three)])
    assert merged == [*rows_of(three), *rows_of(one), *again]
    assert merge(merged, merged) == merged


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "gdi-i3.csv"
    write_rows(path, EVALUATION_COLUMNS, rows_of(job()))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="surprise"):
        write_rows(path, EVALUATION_COLUMNS, [*rows_of(job(seed=2)), {**rows_of(job())[0], "surprise": "1"}])
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["gdi-i3.csv"]


@pytest.mark.parametrize("text", ["a,b\n1,2\n", ",".join(EVALUATION_COLUMNS) + "\ngdi-i3,Breakout,1,30\n"])
def test_a_foreign_or_cut_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(UserError, match=r"x\.csv"):
        read_rows(tmp_path / "x.csv", EVALUATION_COLUMNS)


def test_other_settings_are_never_mixed_in(tmp_path: Path) -> None:
    path, settings = tmp_path / "gdi-i3.json", today("gdi-i3")
    check_settings(path, settings)
    write_settings(path, settings)
    check_settings(path, settings)
    with pytest.raises(UserError, match="steps was 1000000 and is now 4000"):
        check_settings(path, {**settings, "steps": 4000})


# ------------------------------------------------------------------------------------------------- from a sweep


def finished_run(sweep: Path, one: Job) -> None:
    """Leave the files of a finished run of a sweep, without running it."""
    folder, lines = one.folder(sweep), []
    if one.is_peer:
        write_whole(folder / "config.json", json.dumps(settings_of(one, {})))
    else:
        write_whole(folder / "config.json", config_to_json(config_of(one)))
        for steps in (10_000, 21_000, 30_000, 44_000):
            line = {**controller_event(epsilon=9), "kind": "train", "steps": steps, "frames": steps, "updates": 0}
            lines.append({**line, "policy/entropy": 1.5, "clock": {"seconds": 1.0}})
    for steps, mean in ((one.steps // 2, 1.0), (one.steps, 2.5 + one.seed)):
        line = {"kind": "evaluation", "steps": steps, "frames": steps, "updates": 0, "episodes": 32, "mean": mean}
        lines.append({**line, "min": 0, "max": 9, "returns": [0, 9], "clock": {"seconds": 20.04}})
    write_whole(folder / "metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines))


def test_the_records_are_made_of_a_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = plan_of(
        {
            "envs": ["MinAtar/Breakout-v0", "MinAtar/Freeway-v0"],
            "presets": ["gdi-i3", "sb3-ppo"],
            **{"seeds": "0-1", "steps": 50_000, "settings": {"scale": "minatar"}},
        }
    )
    sweep, results = tmp_path / "sweep", tmp_path / "results"
    write_whole(sweep / "plan.toml", plan_to_toml(plan))
    first, *rest = all_jobs(plan)
    finished_run(sweep, first)
    assert export.main([str(sweep), "--results", str(results)]) == 0
    for one in rest:
        finished_run(sweep, one)
    assert export.main([str(sweep), "--results", str(results)]) == 0
    assert {path.name for path in results.iterdir()} == {
        *("gdi-i3.csv", "gdi-i3-lambda.csv", "gdi-i3.json", "ppo.csv", "ppo.json")
    }
    rows = read_rows(results / "ppo.csv", EVALUATION_COLUMNS)
    assert [(row["game"], row["seed"], row["steps"], row["mean"]) for row in rows] == [
        (game, str(seed), steps, mean)
        for game in ("Breakout", "Freeway")
        for seed in (0, 1)
        for steps, mean in (("25000", "1"), ("50000", f"{2.5 + seed:g}"))
    ]
    assert rows[0] == {
        **{"agent": "ppo", "game": "Breakout", "seed": "0", "steps": "25000", "mean": "1", "min": "0", "max": "9"},
        **{"episodes": "32", "seconds": "20.0", "training_steps": "50000"},
    }
    lambdas = read_rows(results / "gdi-i3-lambda.csv", LAMBDA_COLUMNS)
    assert [row["steps"] for row in lambdas[:2]] == ["21000", "44000"]
    assert (lambdas[0]["best_epsilon"], lambdas[0]["entropy"], lambdas[0]["skipped_updates"]) == ("0.95", "1.5", "2")
    stored = read_settings(results / "gdi-i3.json")
    assert stored is not None
    assert ("seed" in stored, "id" in stored["env"], stored["steps"]) == (False, False, 50_000)
    before = {path.name: path.read_bytes() for path in results.iterdir()}
    assert export.main([str(sweep), "--results", str(results)]) == 0
    assert {path.name: path.read_bytes() for path in results.iterdir()} == before
    write_settings(results / "ppo.json", {**(read_settings(results / "ppo.json") or {}), "steps": 9})
    assert export.main([str(sweep), "--results", str(results)]) == 2
    assert "ppo.json: steps was 9 and is now 50000" in capsys.readouterr().err


def controller_event(**best: int) -> dict[str, Any]:
    event: dict[str, Any] = {"steps": 100, "learner/skipped_total": 2}
    blocks = {"inverse_tau_1": 50, "inverse_tau_2": 50, "epsilon": 10}
    for axis, block in best.items():
        chances = [0.0] * blocks[axis]
        chances[block], chances[0] = 0.75, 0.25
        event |= {f"controller/{axis}/block_probability": chances, f"controller/{axis}/best_block": float(block)}
        event[f"controller/{axis}/top_block_probability"] = 0.75
    return event


def middle(block: int) -> float:
    """Of one of 50 blocks of 1/τ, equal in log(1 + 1/τ) from 0 to log 301."""
    return float(301 ** ((block + 0.5) / 50)) - 1


def test_lambda_is_taken_from_the_log() -> None:
    found = export.controller_columns(
        controller_event(inverse_tau_1=30, inverse_tau_2=4, epsilon=9), agents.live_config(AGENTS["gdi-i3"])
    )
    assert found["best_inverse_tau_1"] == pytest.approx(middle(30))
    assert found["best_epsilon"] == pytest.approx(0.95)
    assert found["mean_inverse_tau_1"] == pytest.approx(0.75 * middle(30) + 0.25 * middle(0))
    assert found["top_probability_epsilon"] == 0.75
    held = export.controller_columns(controller_event(inverse_tau_1=30), agents.live_config(AGENTS["boltzmann"]))
    assert held["best_inverse_tau_1"] == pytest.approx(middle(30))
    assert (held["best_inverse_tau_2"], held["best_epsilon"]) == (0.0, 1.0)
    assert "top_probability_epsilon" not in held
    fixed = export.controller_columns({}, agents.live_config(AGENTS["fixed"]))
    assert [fixed[f"best_{axis}"] for axis in ("inverse_tau_1", "inverse_tau_2", "epsilon")] == [1.0, 0.0, 1.0]
    assert export.controller_columns({}, agents.live_config(AGENTS["random"])) == {}


def test_the_log_is_thinned_but_keeps_its_end() -> None:
    lines = [{"steps": steps} for steps in (10, 21, 30, 39, 44, 50)]
    assert [line["steps"] for line in export.subsample(lines, 20)] == [21, 44, 50]


# ------------------------------------------------------------------------------------------------- the statistics


def synthetic(
    score: Callable[[str, str, int], tuple[float, ...]], seeds: int = 3, games: tuple[str, ...] = GAMES
) -> list[Run]:
    """Runs of all agents whose evaluations are ``score(agent, game, seed)``."""
    rows = [
        row
        for agent in AGENTS
        for game in games
        for seed in range(1, seeds + 1)
        for row in rows_of(job(agent, game, seed, 1000), score(agent, game, seed))
    ]
    return stats.make_runs(rows)


SIZE = dict(zip(GAMES, (1.0, 20.0, 50.0, 3.0, 80.0), strict=True))
FACTOR = {"gdi-h3": 3.0, "gdi-i3": 2.0, "gdi-i3-q10": 2.0, "dqn": 1.0, "fixed": 0.0}


def exact(agent: str, game: str, seed: int) -> tuple[float, ...]:
    """Twice DQN in every game and seed, three times, ...; the end counts, not the best."""
    final = SIZE[game] * FACTOR.get(agent, 0.5) * (1 + 0.1 * (seed - 2))
    return (final / 2, 10 * final + 1, final)


def test_twice_dqn_is_two() -> None:
    runs = synthetic(exact)
    divisor = stats.normalizer(runs, GAMES)
    assert divisor == pytest.approx([SIZE[game] for game in GAMES])
    for agent, factor in (("gdi-i3", 2.0), ("gdi-h3", 3.0), ("dqn", 1.0), ("fixed", 0.0)):
        found = scored.estimate(metrics.iqm, scored.score_matrix(runs, agent, GAMES) / divisor)
        assert found.value == pytest.approx(factor)
        assert 0.9 * factor <= found.low <= found.value <= found.high <= 1.1 * factor


def test_the_normalizer_needs_a_score_to_divide_by() -> None:
    runs = synthetic(lambda agent, game, seed: (0.0 if game == "Freeway" else 4.0,))
    divisor = dict(zip(GAMES, stats.normalizer(runs, GAMES), strict=True))
    assert divisor.pop("Freeway") != divisor["Asterix"]
    assert set(divisor.values()) == {4.0}
    assert "Freeway" in tables.aggregates(runs).splitlines()[-1]


def test_missing_runs_are_not_zeros() -> None:
    runs = [run for run in synthetic(exact) if (run.agent, run.game) != ("gdi-i3", "Asterix") or run.seed == 3]
    matrix = scored.score_matrix(runs, "gdi-i3", GAMES)
    assert np.isfinite(matrix).sum(axis=0).tolist() == [1, 3, 3, 3, 3]
    assert scored.score_matrix([], "gdi-i3", GAMES).shape == (1, 5)
    assert math.isnan(scored.estimate(metrics.iqm, scored.score_matrix([], "gdi-i3", GAMES)).value)


def test_probability_of_improvement_decides() -> None:
    runs = synthetic(exact)
    clear = scored.compare(runs, "gdi-i3", "dqn", GAMES)
    assert (clear.probability.value, clear.verdict, clear.games, clear.ahead) == (1.0, "held", 5, 5)
    reverse = scored.compare(runs, "dqn", "gdi-i3", GAMES)
    assert (reverse.probability.value, reverse.verdict, reverse.ahead) == (0.0, "not held", 0)
    even = scored.compare(runs, "random", "boltzmann", GAMES)
    assert (even.probability.value, even.verdict) == (0.5, "undecided")
    alone = scored.compare([run for run in runs if run.seed == 1], "gdi-i3", "dqn", GAMES)
    assert (alone.probability.value, alone.verdict) == (1.0, "undecided")
    lopsided = [run for run in runs if run.agent != "dqn" or run.seed == 1]
    assert scored.compare(lopsided, "gdi-i3", "dqn", GAMES).verdict == "undecided"
    nearly = synthetic(lambda agent, game, seed: (seed + 0.5 * (agent == "gdi-i3"),))
    close = scored.compare(nearly, "gdi-i3", "dqn", GAMES)
    assert close.probability.value == pytest.approx(6 / 9)
    assert close.probability.low < 0.5 < close.probability.high
    assert (close.verdict, close.ahead) == ("undecided", 5)
    nobody = scored.compare([], "gdi-i3", "dqn", GAMES)
    assert nobody.verdict == "not measured"
    # Only the games that both played are compared.
    part = [run for run in runs if run.agent != "dqn" or run.game in ("Asterix", "Breakout")]
    assert scored.compare(part, "gdi-i3", "dqn", GAMES).games == 2


def test_standing_game_by_game() -> None:
    finals = {"gdi-i3": (4.0, 5.0, 6.0), "ppo": (1.0, 2.0, 3.0), "dqn": (4.5, 5.0, 6.5)}
    runs = synthetic(lambda agent, game, seed: (finals.get(agent, (0.0,) * 3)[seed - 1],))
    ahead = scored.head_to_head(runs, "gdi-i3", "ppo", "Breakout")
    assert (ahead.verdict, ahead.difference.value) == ("ahead", 5.0 - 2.0)
    # Seeds are drawn anew on both sides: at most 6 - 1 apart, at least 4 - 3.
    assert 1.0 <= ahead.difference.low < 3.0 < ahead.difference.high <= 5.0
    behind = scored.head_to_head(runs, "ppo", "gdi-i3", "Breakout")
    assert (behind.verdict, behind.difference.value) == ("behind", 2.0 - 5.0)
    tied = scored.head_to_head(runs, "gdi-i3", "dqn", "Breakout")
    assert (tied.verdict, tied.difference.value) == ("tied", pytest.approx(5.0 - 16.0 / 3))
    single = [run for run in runs if run.agent != "ppo" or run.seed == 1]
    assert scored.head_to_head(single, "gdi-i3", "ppo", "Breakout").verdict == "undecided"
    assert scored.head_to_head([], "gdi-i3", "ppo", "Breakout").verdict == "not measured"
    lines = {line.split(" | ")[0]: line for line in tables.against_peers(runs).splitlines()}
    assert lines["| GDI-I3 against PPO (SB3)"].endswith("| 5 of 5 |")
    assert lines["| GDI-I3 against DQN (SB3)"].endswith("| 5 of 5 |")  # all tied
    assert lines["| GDI-H3 against DQN (SB3)"].endswith("| 0 of 5 |")
    told = tables.against_peers(single)
    assert "undecided: 4.0" in told
    assert "| 0 of 5 |" in next(line for line in told.splitlines() if line.startswith("| GDI-I3 against PPO"))


def test_steps_to_a_score() -> None:
    scores = {1: (1.0, 5.0, 4.0, 8.0), 2: (1.0,) * 4, 3: (6.0,) * 4}
    rows = [row for seed, means in scores.items() for row in rows_of(job(seed=seed, steps=10**6), means)]
    runs = stats.make_runs(rows)
    assert scored.first_reach(runs[0], 5.0) == (500_000, 20.0)
    assert scored.first_reach(runs[0], 5.5) == (1_000_000, 40.0)
    assert scored.first_reach(runs[0], 9.0) == (math.inf, math.inf)
    found = scored.time_to_target(runs, "gdi-i3", "Breakout", 5.0)
    assert found == scored.TimeToTarget(steps=500_000, seconds=20.0, reached=2, runs=3)
    assert tables.format_time_to_target(found, seconds=False) == "500k (2 of 3)"
    assert tables.format_time_to_target(found, seconds=True) == "20 s (2 of 3)"
    half = scored.time_to_target(runs[:2], "gdi-i3", "Breakout", 5.0)
    assert tables.format_time_to_target(half, seconds=True) == "not reached (1 of 2)"
    assert scored.time_to_target(runs, "ppo", "Breakout", 5.0) is None


def test_a_curve_is_the_mean_over_seeds() -> None:
    runs = synthetic(exact)
    found = scored.curve(runs, "gdi-i3", "Breakout")
    assert found is not None
    assert found.steps.tolist() == [333, 666, 1000]
    assert found.mean == pytest.approx([20, 401, 40])
    low, high = found.band
    assert (low <= found.mean).all()
    assert (found.mean <= high).all()
    assert low[-1] >= 36
    assert high[-1] <= 44
    assert scored.curve(runs[:0], "gdi-i3", "Breakout") is None
    single = scored.curve([run for run in runs if run.seed == 1], "gdi-i3", "Breakout")
    assert single is not None
    assert single.band is None


# ------------------------------------------------------------------------------------------------- tables and figures


def lambda_row(agent: str, seed: int, steps: int, **known: str) -> Row:
    row = {"agent": agent, "game": "Breakout", "seed": str(seed), "steps": str(steps)}
    return {**dict.fromkeys(LAMBDA_COLUMNS, ""), **row, "skipped_updates": "0", **known}


def test_the_ablation_is_in_the_papers_form() -> None:
    runs = synthetic(exact)
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in ablation.settings(runs).splitlines() if "|" in line
    ]
    by_name = {line[0]: line[1:5] for line in lines}
    three = "λ = (τ1, τ2, ε)"
    assert by_name["GDI-I3"] == ["GDI-I^3", three, "Uniform", "MAB"]
    assert by_name["GDI-H3"] == ["GDI-H^3", three, "Uniform", "MAB"]
    assert by_name["Fix Selection"] == ["GDI-I^0 w/o E", three, "Delta", "Identical Mapping"]
    assert by_name["Random Selection"] == ["GDI-I^3 w/o E", three, "Uniform", "Identical Mapping"]
    assert by_name["Boltzmann Selection"] == ["GDI-I^1", "λ = (τ)", "Uniform", "MAB"]
    assert by_name["ε-greedy Selection"] == ["GDI-I^1", "λ = (ε)", "Uniform", "MAB"]
    score = [line for line in ablation.score_table(runs).splitlines() if line.startswith("| Breakout")]
    assert score[0].startswith("| Breakout | 40.0 | 200.0 | 40.0 | 200.0 | **60.0** | **300.0** | 0.0 | 0.0 |")


def test_every_pair_gets_a_sentence_that_says_what_was_measured() -> None:
    told = ablation.claims(synthetic(exact))
    sentences = [line for line in told.splitlines() if line.startswith("- ")]
    assert len(sentences) == 1 + 2 * 5 + 3 * 2
    assert all(": held; " in line for line in sentences)
    told = ablation.claims([run for run in synthetic(exact) if run.agent != "random"])
    assert "GDI-I3, Q-loss weight 10 over Random Selection (the operator E matters): not measured" in told
    upside_down = synthetic(lambda agent, game, seed: (float(agent == "random") + 0.01 * seed,))
    assert "GDI-I3, Q-loss weight 10 over Random Selection (the operator E matters): not held; " in ablation.claims(
        upside_down
    )


def test_coverage_says_what_is_missing() -> None:
    told = tables.coverage([run for run in synthetic(exact) if run.game != "Freeway"])
    assert "| GDI-I3 | 3 of 5 | 3 of 5 | 0 of 5 |" in told
    assert "| DQN (SB3) | 3 | 3 | 0 of 3 |" in told
    # 4 agents lack 2 seeds in each of 4 games; in the fifth game all 4 * 5 + 6 * 3 runs are missing.
    assert f"{4 * 2 * 4 + 38} runs of a full sweep are missing." in told


def test_health_is_that_of_the_last_line() -> None:
    rows = [
        lambda_row("gdi-i3", 1, 10, entropy="9"),
        lambda_row("gdi-i3", 1, 20, entropy="1", value_mean="2", value_target_mean="2.5", skipped_updates="3"),
        lambda_row("gdi-i3", 2, 20, entropy="2"),
    ]
    line = tables.health(rows).splitlines()[-1]
    assert line == "| GDI-I3 | 1.5 (1 to 2) | – | – | – | 0.5 (0.5 to 0.5) | – | 3 | 2 |"


def test_analysis_writes_tables_and_figures_from_csv_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, out = tmp_path / "results", tmp_path / "out"
    where = ["--results", str(results), "--out", str(out)]
    assert analysis.main(where) == 2
    assert capsys.readouterr().err.count("\n") == 1
    games = ("Breakout", "Freeway")
    for agent in ("gdi-i3", "boltzmann", "ppo"):  # no DQN: nothing to normalize by, and that is told
        rows = [
            row
            for game in games
            for seed in (1, 2)
            for row in rows_of(job(agent, game, seed), exact(agent, game, seed))
        ]
        write_rows(results / f"{agent}.csv", EVALUATION_COLUMNS, rows)
    known = {
        "mean_inverse_tau_1": "3",
        "best_inverse_tau_1": "4",
        "top_probability_inverse_tau_1": "0.5",
        "entropy": "1",
    }
    rows = [lambda_row("boltzmann", seed, steps, **known) for seed in (1, 2) for steps in (10, 20)]
    write_rows(results / "boltzmann-lambda.csv", LAMBDA_COLUMNS, rows)
    assert analysis.main(where) == 0
    written = [Path(line) for line in capsys.readouterr().out.split()]
    names = ["tables.md", "minatar-curves.png", "minatar-lambda.png", "minatar-health.png"]
    assert [path.name for path in written] == names
    assert all(path.read_bytes()[1:4] == b"PNG" for path in written[1:])
    page = written[0].read_text()
    assert "Not computed: scores are normalized by DQN (SB3)" in page
    runs, lambdas = analysis.read_results(results)
    assert analysis.page(runs, lambdas) == page  # the bootstrap, too, is the same each time
    assert figures.iqm_figure(runs) is None
    assert figures.iqm_figure(synthetic(exact)) is not None


def test_the_committed_tables_come_from_the_committed_rows() -> None:
    """Its numbers are bootstrapped with fixed seeds, and its categories are measured on the live presets."""
    assert analysis.page(*analysis.read_results(COMMITTED)) == (COMMITTED / "tables.md").read_text(encoding="utf-8")
