"""The Python API, and the documents' promises about it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import gdi
from gdi.config import EnvConfig, kinds
from gdi.envs import make_env
from gdi.errors import UserError
from gdi.seeds import child_seed
from gdi.types import EpisodeEnd, Index
from helpers import read_metric_lines, tiny_config, with_lstm
from systems import small

ROOT = Path(__file__).parents[1]


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_the_example_runs_as_printed(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = python_blocks(ROOT / page)[0]
    assert len([line for line in block.splitlines() if line.strip()]) < 15
    monkeypatch.chdir(tmp_path)
    # As printed but for its length: a test must be short.
    names: dict[str, object] = {}
    exec(block.replace("steps=50_000", "steps=100"), names)
    assert names["done"]
    assert isinstance(names["agent"], gdi.Agent)
    assert list((tmp_path / "runs").iterdir())


def test_the_example_of_settings_trains_with_them_and_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"gdi": gdi, "config": tiny_config("CartPole-v1", steps=300)}
    exec(python_blocks(ROOT / "docs/start.md")[1], names)
    assert gdi.load(names["result"].run_dir).config.data.replay == 4
    assert "training for 300 steps" in capsys.readouterr().err


def test_the_atari_example_gives_what_an_agent_takes() -> None:
    names: dict[str, Any] = {}
    exec(python_blocks(ROOT / "docs/start.md")[2], names)
    ours = make_env(EnvConfig("ALE/Pong-v5", 1, protocol="paper"))
    env = names["env"]
    assert env.observation_space.shape == ours.spec.frame_shape
    assert env.action_space.n == ours.spec.num_actions
    assert np.array_equal(np.unique(env.reset(seed=0)[0]), np.unique(ours.reset(0)))


@pytest.mark.parametrize("recurrent", [False, True])
def test_an_agent_plays_and_repeats_itself_for_a_seed(tmp_path: Path, recurrent: bool) -> None:
    config = tiny_config("CartPole-v1", steps=600)
    run = gdi.train(with_lstm(config) if recurrent else config, tmp_path / "run")

    def play(seed: int) -> list[int]:
        agent = gdi.load(run.run_dir, seed=seed)
        env = gymnasium.make("CartPole-v1")
        observation, _ = env.reset(seed=0)
        agent.reset()
        actions, reward = [], 0.0
        for _ in range(30):
            actions.append(agent.act(observation, reward))
            observation, reward, terminated, truncated, _ = env.step(actions[-1])
            if terminated or truncated:
                observation, _ = env.reset()
                agent.reset()
        return actions

    assert play(1) == play(1)
    assert play(1) != play(2)
    assert set(play(1)) <= {0, 1}


def test_agent_evaluates_as_the_run_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller and θ that come back from disk are those that were evaluated at the end."""
    config = tiny_config("Toy/Surface-v0", steps=4000)
    run = gdi.train(config, tmp_path / "run")
    assert run.evaluation is not None
    agent = gdi.load(run.run_dir)
    # The run's own seed of its last evaluation, in the place where the agent's would be.
    monkeypatch.setattr("gdi.agent.child_seed", lambda *_: child_seed(config.seed, "evaluation", agent.steps))
    assert agent.evaluate(config.evaluation.episodes) == run.evaluation
    for parameter in agent._params.values():
        parameter.zero_()
    assert agent.evaluate(config.evaluation.episodes) != run.evaluation


def test_actions_are_the_environments_own_names(tmp_path: Path) -> None:
    """An action space that starts at 3 gets 3, 4 or 5 from the agent."""
    config = tiny_config("test_envs:gdi_test/Offset-v0", steps=200)
    run = gdi.train(replace(config, env=replace(config.env, max_episode_steps=10)), tmp_path / "run")
    agent = gdi.load(run.run_dir)
    assert {agent.act(np.zeros((2, 2))) for _ in range(50)} == {3, 4, 5}


def test_an_observation_of_another_shape_is_refused(tmp_path: Path) -> None:
    agent = gdi.load(gdi.train(tiny_config("CartPole-v1", steps=200), tmp_path / "run").run_dir)
    with pytest.raises(UserError, match=r"shape \(4,\), not \(2, 4\)"):
        agent.act(np.zeros((2, 4)))


def test_new_lambda_each_episode(tmp_path: Path) -> None:
    run = gdi.train(tiny_config(preset="random", steps=400), tmp_path / "run")
    agent = gdi.load(run.run_dir)
    first = agent.index
    agent.reset()
    assert agent.index != first
    assert 0 <= agent.named_index["epsilon"] <= 1


def test_the_controller_finds_the_known_peak_and_identity_does_not(tmp_path: Path) -> None:
    """Toy/Surface pays 1 − |rate − 0.8| for the rate of action 1, and its observation is constant.

    With θ frozen at an advantage of +1 for action 1, the rate is a known function of λ; the best mean return an agent
    can reach is a little under 1, by λ alone. The bandits must find such λ, fixed and uniform must not.
    """
    from gdi.controller import make_controller

    config = tiny_config("Toy/Surface-v0")
    rng = np.random.default_rng(0)

    def rate(index: Index) -> float:
        def sigmoid(x: float) -> float:
            return float(1 / (1 + np.exp(-x)))

        inverse_tau_1, inverse_tau_2, epsilon = index
        return epsilon * sigmoid(0.2 * inverse_tau_1) + (1 - epsilon) * sigmoid(-0.2 * inverse_tau_2)

    scores = {}
    for kind in ("tile-bandit", "uniform", "fixed"):
        controller = make_controller(replace(config, controller=kinds("controller")[kind]()))
        for _ in range(3000):
            (index,) = controller.propose([0])
            episode_return = 1 - abs(rng.binomial(20, rate(index)) / 20 - 0.8)
            controller.observe([EpisodeEnd(0, index, episode_return, length_steps=20, truncated=False)], 20)
        best = [controller.propose_best(0, rng) for _ in range(200)]
        scores[kind] = float(np.mean([1 - abs(rate(index) - 0.8) for index in best]))
    assert scores["tile-bandit"] > 0.85
    assert scores["uniform"] < 0.75
    assert scores["fixed"] < 0.8


def test_documented_metrics_are_logged_and_logged_metrics_documented(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`([\w/<>.]+)`", page))
    config = with_lstm(tiny_config(preset="gdi-h3", forward_dynamics_scale=0.1, inverse_dynamics_scale=0.1))
    lines = read_metric_lines(gdi.train(config, tmp_path / "run").run_dir)
    for preset in ("dqn", "ppo"):
        lines += read_metric_lines(gdi.train(replace(small(preset), steps=600), tmp_path / preset).run_dir)
    logged = {re.sub("(?<=controller/)(inverse_tau_[12]|epsilon)", "<axis>", name) for line in lines for name in line}
    assert logged <= documented, logged - documented
    slashed = {
        name
        for name in documented
        if re.fullmatch(r"(episode|loss|policy|value|optimizer|actor|learner|collector|controller)/.*", name)
    }
    assert slashed <= logged, slashed - logged


def test_loading_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        gdi.load(tmp_path / "nothing")


def test_links_between_documents_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} -> {target}"
