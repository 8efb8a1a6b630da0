"""The evaluator on environments whose returns are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gdi.acting.player import Player
from gdi.algorithms import make_algorithm
from gdi.config import EnvConfig
from gdi.envs.toy import ToyEnv, make_toy
from gdi.evaluation import Evaluation, Evaluator, normalized_scores, report_of
from gdi.evaluation import evaluator as module
from gdi.networks import AgentNetwork, Seen
from gdi.runtime.factories import make_evaluator
from gdi.types import Index
from helpers import error_line, make_network, randomize_advantages, tiny_config, with_lstm

LAMBDA = (1.0, 1.0, 0.5)


def made(env: ToyEnv, *, recurrent: bool = False) -> tuple[Evaluator, dict[str, torch.Tensor], AgentNetwork]:
    config = tiny_config("Toy/Counting-v0")
    config = with_lstm(config) if recurrent else config
    network = make_network(config, env.spec.observation_shape, env.spec.num_actions, 0)
    randomize_advantages(network)
    params = {name: value.clone() for name, value in network.state_dict().items()}
    player = Player(make_algorithm(config), network, env.num_envs, env.spec)
    return Evaluator(EnvConfig("Toy/Counting-v0"), env, player), params, network


def test_quotas_lengths_and_returns() -> None:
    """3 copies, 8 episodes: quotas 3, 3, 2. Copy i lasts 5 + i steps and pays 0 + 1 + ... + (4 + i)."""
    evaluator, params, _ = made(make_toy("Toy/Counting-v0", 3))
    result = evaluator.evaluate(params, lambda env, rng: LAMBDA, 8, seed=0)
    assert result is not None
    returns = [10] * 3 + [15] * 3 + [21] * 2
    lengths = [5] * 3 + [6] * 3 + [7] * 2
    assert result.episodes == 8
    assert result.mean == pytest.approx(np.mean(returns))
    assert result.median == pytest.approx(np.median(returns))
    assert (result.min, result.max) == (10, 21)
    assert result.std == pytest.approx(np.std(returns))
    assert result.length_mean_steps == pytest.approx(np.mean(lengths))
    assert result.cut_episodes == 0


def test_one_lambda_per_episode_from_the_given_generator() -> None:
    evaluator, params, _ = made(make_toy("Toy/Counting-v0", 3))
    asked: list[int] = []

    def propose(env: int, rng: np.random.Generator) -> Index:
        asked.append(env)
        return (float(rng.random()), 1.0, 0.5)

    evaluator.evaluate(params, propose, 8, seed=0)
    # One at the start of each copy, one after each of the 8 episodes.
    assert len(asked) == 3 + 8


def test_recurrent_state_resets_with_the_episode() -> None:
    evaluator, params, network = made(make_toy("Toy/Counting-v0", 2), recurrent=True)
    seen: list[Seen] = []
    network.register_forward_hook(lambda m, args, out: seen.append(args[0]))
    evaluator.evaluate(params, lambda env, rng: LAMBDA, 6, seed=0)
    for x in seen:
        # The counting environment's second number is the step within the episode.
        assert torch.equal(x.episode_start[0], x.obs[0, :, 1] == 0)


def test_the_same_seed_gives_the_same_result_and_another_another() -> None:
    env = make_toy("Toy/Chain-v0", 4)
    evaluator, params, _ = made(env)
    one, two, three = (evaluator.evaluate(params, lambda e, r: LAMBDA, 12, seed=s) for s in (1, 1, 2))
    assert one == two
    assert one != three


def test_an_episode_that_does_not_end_is_cut_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_EPISODE_STEPS", 6)
    evaluator, params, _ = made(make_toy("Toy/Counting-v0", 3))
    result = evaluator.evaluate(params, lambda env, rng: LAMBDA, 3, seed=0)
    assert result is not None
    # Copies last 5, 6 and 7 steps: only the last is cut, after 6 steps and 0 + ... + 5 = 15 points.
    assert result.cut_episodes == 1
    assert (result.episodes, result.max) == (3, 15)


def test_a_stop_ends_it_without_a_result() -> None:
    evaluator, params, _ = made(make_toy("Toy/Counting-v0", 3))
    calls = iter(range(100))
    assert evaluator.evaluate(params, lambda env, rng: LAMBDA, 8, 0, lambda: next(calls) >= 3) is None


def test_lambda_belongs_to_the_episode_that_the_observation_does() -> None:
    """The counting observation's first number is the episode; λ's first number is made the same."""
    evaluator, params, network = made(make_toy("Toy/Counting-v0", 2))
    drawn = [0, 0]

    def propose(env: int, rng: np.random.Generator) -> Index:
        drawn[env] += 1
        return (float(drawn[env] - 1), 0.0, 1.0)

    rows: list[tuple[torch.Tensor, torch.Tensor]] = []  # (λ's first number, the episode), each [copies]
    network.register_forward_hook(
        lambda m, args, out: rows.append((args[0].index[0, :, 0].clone(), args[0].obs[0, :, 0].clone()))
    )
    evaluator.evaluate(params, propose, 6, seed=0)
    index, episode = (torch.stack(column) for column in zip(*rows, strict=True))
    wanted = episode < 3  # 3 episodes a copy; a copy that is done plays on unheard
    assert torch.equal(index[wanted], episode[wanted])
    assert index.max() == 3


def evaluation_of(env: str, mean: float) -> Evaluation:
    return Evaluation(env, 4, mean, mean, mean, mean, 0.0, 100.0, 0)


def test_atari_scores_stand_beside_random_play_humans_and_world_records() -> None:
    """Breakout in the paper's tables: random 1.7, human 30.5, world record 864."""
    scores = normalized_scores(evaluation_of("ALE/Breakout-v5", 100.0))
    assert scores["hns"] == pytest.approx((100.0 - 1.7) / (30.5 - 1.7))
    assert scores["hwrns"] == pytest.approx((100.0 - 1.7) / (864.0 - 1.7))
    assert scores["saber"] == pytest.approx((100.0 - 1.7) / (864.0 - 1.7))
    high = normalized_scores(evaluation_of("ALE/Breakout-v5", 3000.0))
    assert high["hwrns"] == pytest.approx((3000.0 - 1.7) / (864.0 - 1.7))
    assert high["saber"] == 2.0  # SABER caps at 200 %


def test_a_report_is_the_evaluation_and_its_normalized_scores() -> None:
    evaluation = evaluation_of("CartPole-v1", 195.0)
    assert normalized_scores(evaluation) == {"hns": None, "hwrns": None, "saber": None}
    nothing = {"returns": [], "hns": None, "hwrns": None, "saber": None}
    assert report_of(evaluation) == {**evaluation.to_dict(), **nothing}
    atari = evaluation_of("ALE/Breakout-v5", 100.0)
    assert report_of(atari) == {**atari.to_dict(), "returns": [], **normalized_scores(atari)}
    assert not {"hns", "hwrns", "saber"} & set(evaluation.to_dict())


def test_a_configured_lambda_replaces_the_controllers() -> None:
    """The environment shows λ to nobody, so the player is watched instead."""
    env = make_toy("Toy/Counting-v0", 3)
    _, params, network = made(env)
    player = Player(make_algorithm(tiny_config("Toy/Counting-v0")), network, env.num_envs, env.spec)
    shown: list[np.ndarray] = []
    act = player.act
    player.act = lambda observed, generator: shown.append(observed.index.copy()) or act(observed, generator)  # type: ignore[method-assign, func-returns-value]
    Evaluator(EnvConfig("Toy/Counting-v0"), env, player, (2.0, 3.0, 0.25)).evaluate(
        params, lambda env, rng: pytest.fail("the controller was asked"), 4, seed=0
    )
    assert np.array_equal(np.unique(np.concatenate(shown), axis=0), [[2.0, 3.0, 0.25]])


def test_greedy_evaluations_play_the_most_probable_action() -> None:
    """Two evaluations with unequal seeds of the actions are equal if they are greedy, and only then."""
    config = tiny_config("CartPole-v1")
    config = replace(config, env=replace(config.env, max_episode_steps=60))
    network_seed = 0

    def returns(greedy: bool) -> list[tuple[float, float]]:
        found = []
        for action_seed in (1, 2):
            evaluation = replace(config.evaluation, greedy=greedy)
            evaluator = make_evaluator(replace(config, evaluation=evaluation), torch.device("cpu"), 1)
            player = evaluator._player
            randomize_advantages(player.network)
            params = {name: value.clone() for name, value in player.network.state_dict().items()}
            act, generator = player.act, torch.Generator().manual_seed(action_seed)
            player.act = lambda observed, _, act=act, generator=generator: act(observed, generator)  # type: ignore[method-assign, misc]
            result = evaluator.evaluate(params, lambda env, rng: (1.0, 1.0, 0.5), 8, seed=network_seed)
            assert result is not None
            found.append((result.mean, result.length_mean_steps))
            evaluator.close()
        return found

    greedy, drawn = returns(True), returns(False)
    assert greedy[0] == greedy[1]
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--evaluation.index", "0.1", "0.2"], "--evaluation.index needs one number per component (epsilon), not 2."),
        (["--evaluation.index", "1.5"], "--evaluation.index: epsilon must be in [0, 1], not 1.5."),
    ],
)
def test_a_wrong_evaluation_index_is_one_line(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert expected in error_line(["train", "dqn", "--env", "CartPole-v1", *words], capsys)
