"""``gdi bench`` and ``gdi envs``: what they report adds up. No speeds are asserted."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from gdi.cli.main import main
from gdi.config import Config
from gdi.envs import make_env
from gdi.presets import make_config
from gdi.runtime.bench import PARTS, BenchResult, bare_window, bench, stepped_environments
from gdi.runtime.local import LocalOperators, build
from gdi.scores.games import GAMES
from gdi.types import Array
from helpers import change, tiny_config, with_lstm
from systems import small


def atari(**run: object) -> Config:
    config = make_config("gdi-i3", "breakout", scale="atari-cpu")
    return replace(
        config,
        env=replace(config.env, num_envs=2),
        network=replace(config.network, hidden_units=16, lstm_units=8),
        data=replace(config.data, batch_size_sequences=2, sequence_steps=5, replay=2, replay_span_windows=2),
        evaluation=replace(config.evaluation, episodes=1),
        run=replace(config.run, threads=1, **run),
    )


CASES = {
    "atari": atari(),
    "overlap": atari(overlap=True, workers=2),
    "minatar-h3": with_lstm(tiny_config(preset="gdi-h3", burn_in_steps=2)),
    "vectors": tiny_config("CartPole-v1"),
    "dqn": small("dqn"),
    "ppo": small("ppo"),
    "impala": small("impala"),
}


@pytest.mark.parametrize("name", CASES)
def test_bench_adds_up(name: str) -> None:
    config = CASES[name]
    result = bench(config, seconds=0.05, rounds=2)
    assert set(result.shares) == set(PARTS)
    assert sum(result.shares.values()) == pytest.approx(1.0)
    assert all(0.0 <= share <= 1.0 for share in result.shares.values())
    assert result.bottleneck == max(result.shares, key=lambda part: result.shares[part])
    frames_per_step = 4 if config.env.protocol else 1
    assert result.frames_per_second == pytest.approx(frames_per_step * result.steps_per_second)
    assert result.ceiling_steps_per_second > 0
    assert result.fraction_of_ceiling > 0
    assert result.reachable_steps_per_second > 0
    assert result.fraction_of_reachable > 0


def test_bench_prints_the_promised_keys(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seconds: list[float] = []

    def quick(config: Config, given: float) -> BenchResult:
        seconds.append(given)
        return bench(config, seconds=0.05, rounds=2)

    monkeypatch.setattr("gdi.runtime.bench.bench", quick)
    sizes = [
        "--network.hidden-units",
        "8",
        "--env.num-envs",
        "4",
        "--data.replay-span-windows",
        "8",
        "--run.threads",
    ]
    assert main(["bench", "--env", "CartPole-v1", "--seconds", "7", "--json", *sizes, "1"]) == 0
    assert seconds == [7]
    printed = json.loads(capsys.readouterr().out)
    promised = {"steps_per_second", "frames_per_second", "ceiling_steps_per_second", "fraction_of_ceiling"}
    promised |= {"reachable_steps_per_second", "fraction_of_reachable"}
    assert promised | {"shares", "bottleneck"} <= set(printed)
    assert main(["bench", "--env", "CartPole-v1", "--seconds", "1", *sizes, "1"]) == 0
    ceiling, below, reachable, under = capsys.readouterr().out.splitlines()[2:6]
    assert "the network alone" in ceiling
    assert "the network and the environments alone" in reachable
    for line in (below, under):
        assert re.fullmatch(r" +training is \d+% of that", line)


def test_what_is_reachable_has_the_environments_steps() -> None:
    """Each step that is acted, of 5 a window, brings one step of all environments, and one pass of the real network."""
    config = atari()
    system = build(config)
    steps: list[None] = []
    network = system.parts.learner.network
    passed: list[tuple[int, int]] = []  # (steps, environments or sequences) of every forward pass
    network.register_forward_hook(lambda m, args, out: passed.append(tuple(args[0].obs.shape[:2])))
    with bare_window(config, system.spec, network, system.plan.chunk_sequences, 1) as run_bare:
        for _ in range(2):
            run_bare(lambda: steps.append(None))
    system.close()
    assert len(steps) == 2 * config.data.sequence_steps
    # 4 environments bring 4 sequences a window, each trained twice in batches of 4.
    assert Counter(passed) == {(1, 2): 2 * 5, (5 + 1, 2): 2 * 2}


def test_the_ceiling_acts_burns_in_and_trains_as_much_as_a_window_brings() -> None:
    """8 environments, each sequence trained 3 times, in chunks of 16: 24 / 16 = 1.5 chunks a window.

    So windows bring one chunk and two in turn: what is left over is done in the next.
    """
    config = with_lstm(tiny_config(preset="gdi-h3", burn_in_steps=2, batch_size_sequences=16, replay=3))
    system = build(config)
    network = system.parts.learner.network
    passed: list[tuple[int, int, bool, bool]] = []  # (steps, columns, inference mode, gradient)
    network.register_forward_hook(
        lambda m, args, out: passed.append(
            (*args[0].obs.shape[:2], torch.is_inference_mode_enabled(), torch.is_grad_enabled())
        )
    )
    before = {name: value.clone() for name, value in network.state_dict().items()}
    chunks: list[int] = []
    with bare_window(config, system.spec, network, system.plan.chunk_sequences, 1) as run_bare:
        for _ in range(4):
            passed.clear()
            run_bare(lambda: None)
            count = Counter(passed)
            chunks.append(count[(5 + 1, 16, False, True)])
            assert count == {
                (1, 8, True, False): 5,  # acting
                (2, 16, False, False): chunks[-1],  # burn-in
                (5 + 1, 16, False, True): chunks[-1],  # training, with the bootstrap row
            }
    system.close()
    assert chunks == [1, 2, 1, 2]
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(p.grad is None for p in network.parameters())


def test_the_ceiling_of_dqn_passes_one_row_through_each_of_two_networks() -> None:
    """8 environments x 2 steps bring 16 / 4 = 4 updates of 8 slices. Only the first row of a slice is trained."""
    config = small("dqn")
    system = build(config)
    network = system.parts.learner.network
    passed: list[tuple[int, int, bool]] = []  # (rows, columns, gradient)
    network.register_forward_hook(lambda m, args, out: passed.append((*args[0].obs.shape[:2], torch.is_grad_enabled())))
    with bare_window(config, system.spec, network, system.plan.chunk_sequences, 1) as run_bare:
        run_bare(lambda: None)
    system.close()
    assert Counter(passed) == {(1, 8, False): 2 + 4, (1, 8, True): 4}  # acting and target network, training


def test_a_long_learn_start_does_not_make_the_warm_up_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """1,000 transitions at most: two windows of 16 for each 16 of them, and two more."""
    config = change(small("dqn"), capacity_transitions=50_000, learn_start_transitions=50_000)
    played: list[None] = []
    original = LocalOperators.sample

    def counting(self: LocalOperators, max_transitions: int) -> Any:
        played.append(None)
        return original(self, max_transitions)

    monkeypatch.setattr(LocalOperators, "sample", counting)
    assert bench(config, seconds=0.01, rounds=1).shares["learning"] > 0
    assert len(played) < 2 * 1000 / 16 + 20


def test_environments_are_stepped_by_their_own_actions_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny_config("CartPole-v1")
    env = make_env(config.env)
    taken: list[Array] = []
    closed: list[bool] = []
    monkeypatch.setattr(env, "step", taken.append)
    monkeypatch.setattr(env, "close", lambda: closed.append(True))
    monkeypatch.setattr("gdi.runtime.bench.make_env", lambda *_, **__: env)
    with stepped_environments(config) as step:
        for _ in range(1001):  # more than were drawn before
            step()
        assert not closed
    assert closed == [True]
    assert np.shape(taken) == (1001, env.num_envs)
    assert set(np.unique(taken)) == {0, 1}


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["bench", "--env", "pongg"], "pong"),
        (["bench", "--env", "CartPole-v1", "--seconds", "0"], "--seconds"),
        (["bench", "--env", "CartPole-v1", "--run-dir", "x"], "--run-dir"),
        (["train", "--env", "ALE/Brakeout-v5"], "breakout"),
        (["train", "--env", "CartPole-v1", "--env.protocol", "saber"], "Atari"),
        (["train", "--env", "pong", "--env.protocol", "sabre"], "saber"),
    ],
)
def test_bad_input_is_one_line(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert words in told


def test_envs_lists_the_games_with_the_papers_scores(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["envs", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [row["game"] for row in printed["atari"]] == list(GAMES)
    breakout = next(row for row in printed["atari"] if row["game"] == "breakout")
    assert (breakout["id"], breakout["human"], breakout["world_record"]) == ("ALE/Breakout-v5", 30.5, 864.0)
    assert set(printed["protocols"]) == {"paper", "machado", "saber"}
    assert main(["envs"]) == 0
    shown = capsys.readouterr().out
    assert all(game in shown for game in GAMES)
    assert all(f"{row['world_record']:,.10g}" in shown for row in printed["atari"])
