"""Peers: Stable-Baselines3's agents honor their seed, train on our environments, and leave a run folder."""

from __future__ import annotations

import inspect
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gdi.cli.main import main
from gdi.config import EnvConfig
from gdi.envs import make_env
from gdi.errors import DivergenceError, UserError
from gdi.networks.torsos import make_torso
from gdi.sweep import peer_play, peers
from gdi.sweep.jobs import Job, check_plan
from gdi.sweep.peer_env import Observations, SingleEnv, Torso, observation_space
from gdi.sweep.peer_play import Player, play
from gdi.sweep.peer_settings import (
    MORE_OF,
    MORE_OF_ALL,
    NETWORK,
    PEERS,
    known_settings,
    peer_config,
    peer_settings,
)
from gdi.sweep.peers import algorithm_of, linear, make_model, run_peer, train_peer, try_peer
from gdi.sweep.plan import plan_of
from gdi.sweep.status import StatusReader
from gdi.sweep.worker import run_job

BREAKOUT = "MinAtar/Breakout-v0"
SMALL_PPO = {"sb3.num_envs": 8, "sb3.batch_size": 64, "evaluation.every_steps": 100}
SMALL_DQN = {"sb3.learning_starts": 100, "evaluation.every_steps": 100}
SMALL = {
    "sb3-ppo": SMALL_PPO,
    "sb3-recurrent-ppo": {**SMALL_PPO, "sb3.lstm_units": 8},
    "sb3-dqn": SMALL_DQN,
    "sb3-qrdqn": SMALL_DQN,
}


def quiet(steps: int) -> None:
    pass


def peer(preset: str, seed: int, steps: int = 400, env: str = BREAKOUT, **more: Any) -> Job:
    return Job(
        env, preset, "", seed, steps, {**SMALL[preset], **{key.replace("__", "."): v for key, v in more.items()}}
    )


def trained(job: Job) -> list[tuple[int, list[float]]]:
    lines: list[Any] = []
    train_peer(job, quiet, lines)
    return [(line["steps"], line["returns"]) for line in lines]


def test_a_peer_honors_its_seed_and_is_not_changed_by_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    found = trained(peer("sb3-ppo", 1))
    assert [steps for steps, _ in found] == [104, 200, 304, 512]
    assert all(len(returns) == 32 for _, returns in found)
    assert trained(peer("sb3-ppo", 1)) == found
    assert trained(peer("sb3-ppo", 2)) != found
    assert trained(peer("sb3-ppo", 1, evaluation__every_steps=400)) == found[-1:]
    # Training, not only evaluation, depends on the seed.
    child_seed = peers.child_seed
    monkeypatch.setattr(peers, "child_seed", lambda seed, *name: child_seed(7 if "evaluation" in name else seed, *name))
    assert trained(peer("sb3-ppo", 1))[-1] != trained(peer("sb3-ppo", 2))[-1]


def test_a_peer_leaves_nothing_in_the_temporary_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    trained(peer("sb3-ppo", 1))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("env", [BREAKOUT, "CartPole-v1"])
@pytest.mark.parametrize("preset", PEERS)
def test_every_peer_trains_and_leaves_a_run_folder(preset: str, env: str, tmp_path: Path) -> None:
    job = peer(preset, 3, 200, env, evaluation__episodes=2, evaluation__every_steps=100)
    if "ppo" in preset:
        job = peer(preset, 3, 128, env, evaluation__episodes=2, evaluation__every_steps=64, sb3__n_steps=8)
    assert StatusReader(tmp_path).read(job).word == "none"
    folder = job.folder(tmp_path)
    run_peer(job, folder, quiet)
    status = StatusReader(tmp_path).read(job)
    assert status.word == "finished"
    assert [len(line["returns"]) for line in status.evaluations] == [2, 2]
    assert status.evaluations[-1]["updates"] > 0
    settings = json.loads((folder / "config.json").read_text())
    assert (settings["preset"], settings["env"]["id"], settings["seed"]) == (preset, env, 3)
    assert main(["report", str(folder), "-o", str(tmp_path / "report.html")]) == 0


def test_dqn_learns_from_transitions_alone() -> None:
    assert [steps for steps, _ in trained(peer("sb3-dqn", 1))] == [100, 200, 300, 400]


def test_an_evaluation_plays_one_episode_in_each_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    class Rewarding:
        """Environment i ends with its step i + 2, begins again, and gives a reward of 1 at every step."""

        clock = 0
        spec = make_env(EnvConfig(BREAKOUT, num_envs=1)).spec

        def reset(self, seed: int) -> Any:
            return np.zeros((3, 10, 10, 4), bool)

        def step(self, action: Any) -> Any:
            self.clock += 1
            ends = np.array([self.clock == i + 2 for i in range(3)])
            return np.zeros((3, 10, 10, 4), bool), np.ones(3, np.float32), ends & [True, False, True], ends

        def close(self) -> None:
            pass

    class Still:
        def begin(self) -> None: ...

        def act(self, obs: Any, generator: Any) -> Any:
            return obs[:, 0, 0, 0].long()

    monkeypatch.setattr(peer_play, "make_env", lambda config, count: Rewarding())
    found = play(EnvConfig(BREAKOUT), Still(), 3, 1)  # type: ignore[arg-type]
    assert found.tolist() == [2, 3, 4]


def test_the_lstm_of_a_peer_remembers_within_an_evaluation_only() -> None:
    import torch

    job = peer("sb3-recurrent-ppo", 1)
    _, player = make_model(job, peers.make_vector_env(job, peers.shared_config(BREAKOUT, 1, 400, job.settings)))
    obs = torch.rand(4, 4, 10, 10)

    def drawn() -> Any:
        with torch.inference_mode():
            player.act(obs, torch.Generator().manual_seed(1))
        return player._state[0].clone()

    player.begin()
    first, second = drawn(), drawn()
    assert not torch.equal(first, second)
    player.begin()
    assert torch.equal(drawn(), first)


def test_a_game_for_the_peers_counts_no_reset_as_a_step() -> None:
    ours, theirs = make_env(EnvConfig(BREAKOUT, num_envs=1)), SingleEnv(EnvConfig(BREAKOUT, num_envs=1))
    obs, (seen, _) = ours.reset(5), theirs.reset(seed=5)
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(300):
        action = rng.integers(6)
        step = ours.step(np.array([action]))
        seen, reward, terminated, truncated, _ = theirs.step(action)
        assert (reward, terminated, truncated) == (step.reward[0], step.terminated[0], step.truncated[0])
        if terminated or truncated:
            ends += 1
            step = ours.step(np.array([0]))  # the reset, which is a step for us
            seen, _ = theirs.reset()
        obs = step.obs
        assert (seen == obs[0].transpose(2, 0, 1)).all()
        assert theirs.observation_space.contains(seen)
    assert ends > 3


def test_atari_is_seen_as_stacked_frames() -> None:
    env = SingleEnv(EnvConfig("ALE/Pong-v5", num_envs=1, protocol="paper"))
    seen, _ = env.reset(seed=1)
    assert env.observation_space.shape == seen.shape == (4, 84, 84)
    assert env.observation_space.contains(seen)
    assert all((seen[k] == seen[0]).all() for k in range(4))
    moved = False
    for step in range(60):
        before, seen = seen, env.step(np.int64(step % 6))[0]
        assert (seen[:3] == before[1:]).all()
        moved |= bool((seen[3] != before[3]).any())
    assert moved
    assert env.reset()[0].shape == (4, 84, 84)


def test_masks_are_refused() -> None:
    spec = make_env(EnvConfig(BREAKOUT, num_envs=1)).spec
    with pytest.raises(UserError, match="play every action"):
        observation_space(spec._replace(has_mask=True))
    assert Observations(spec, 2).see(np.zeros((2, 10, 10, 4), bool), np.ones(2, bool)).shape == (2, 4, 10, 10)


def test_peers_have_gdis_torso() -> None:
    game = SingleEnv(EnvConfig("MinAtar/Seaquest-v0", num_envs=1))
    shape = game.observation_space.shape
    assert shape is not None
    ours = make_torso("minatar", (*shape[1:], shape[0]), NETWORK["hidden_units"])
    theirs = Torso(game.observation_space, **NETWORK)  # type: ignore[arg-type]
    assert sorted(p.shape for p in ours.parameters()) == sorted(p.shape for p in theirs.parameters())


# ------------------------------------------------------------------------------------------------- settings


@pytest.mark.parametrize("preset", PEERS)
def test_every_setting_is_an_argument_of_the_library(preset: str) -> None:
    arguments = set(inspect.signature(algorithm_of(preset)).parameters)
    assert set(known_settings(preset)) - {*MORE_OF_ALL, *MORE_OF[preset]} <= arguments


def test_settings_of_a_plan_reach_the_model() -> None:
    job = peer("sb3-dqn", 1, sb3__learning_rate=0.5, sb3__exploration_steps=40, sb3__hidden_units=7)
    shared = peers.shared_config(BREAKOUT, 1, 400, job.settings)
    model, player = make_model(job, peers.make_vector_env(job, shared))
    assert model.learning_rate == 0.5
    assert model.exploration_fraction == 0.1  # type: ignore[attr-defined]
    assert model.policy.optimizer.param_groups[0]["eps"] == 3.125e-4
    assert model.n_envs == 4
    assert player._epsilon == 0.001
    assert {p.shape[0] for p in model.policy.parameters()} >= {7}
    assert shared.evaluation.every_steps == 100
    config = peer_config("sb3-dqn", BREAKOUT, 1, 400, job.settings)
    assert (config["learner"]["learning_rate"], config["env"]["num_envs"]) == (0.5, 4)
    assert peer_settings("sb3-dqn", "CartPole-v1", {}) == {"num_envs": 1, "evaluation_epsilon": 0.001}


def test_a_learning_rate_goes_to_its_end_and_not_past_it() -> None:
    rate = linear(1e-3, 1e-4)
    assert [rate(left) for left in (1.0, 0.5, 0.0, -0.1)] == pytest.approx([1e-3, 5.5e-4, 1e-4, 1e-4])


def test_settings_of_the_environment_are_those_of_our_presets() -> None:
    job = peer("sb3-ppo", 1, env__max_episode_steps=3, evaluation__episodes=2)
    assert max(max(returns) for _, returns in trained(job)) <= 3
    tree = {"envs": [BREAKOUT], "presets": ["gdi-i3", "sb3-ppo"], "seeds": [0], "steps": 1e5}
    jobs = check_plan(plan_of({**tree, "settings": {"env.max_episode_steps": 3, "env.num_envs": 8, "lr": 1e-3}}))
    assert jobs[0].settings == {"env.max_episode_steps": 3, "env.num_envs": 8, "optimizer.learning_rate": 1e-3}
    assert jobs[1].settings == {"env.max_episode_steps": 3}


# ------------------------------------------------------------------------------------------------- ends of a run


def test_a_peer_that_diverges_is_a_result(tmp_path: Path) -> None:
    job = peer("sb3-ppo", 1, 20_000, "CartPole-v1", sb3__learning_rate=1e30, sb3__n_steps=64)
    with pytest.raises(DivergenceError):
        train_peer(job, quiet, [])
    run_job(job, job.folder(tmp_path), quiet)
    status = StatusReader(tmp_path).read(job)
    assert status.word == "diverged"
    assert 0 < status.steps < 20_000


def test_a_q_learner_that_diverges_ends_early(tmp_path: Path) -> None:
    """The library goes on with a network of NaN, and plays the first action."""
    job = peer("sb3-dqn", 1, 5000, "CartPole-v1", sb3__learning_rate=1e30, sb3__train_freq=1)
    run_job(job, job.folder(tmp_path), quiet)
    status = StatusReader(tmp_path).read(job)
    assert status.word == "diverged"
    assert 0 < status.steps < 1000


def test_a_trial_of_a_peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = try_peer(peer("sb3-dqn", 1, 10**6), 0.5)
    assert found.steps_per_second > 10
    assert found.memory_bytes > 2 * 100_000 * 400
    assert try_peer(peer("sb3-dqn", 1, 10**6), 0.0).steps_per_second == 0.0
    with pytest.raises(UserError, match="refuses these settings"):
        try_peer(peer("sb3-ppo", 1, 10**6, sb3__gae_lambda=0.5, sb3__n_steps=0), 0.0)
    assert not list(tmp_path.iterdir())


def test_a_player_explores_by_epsilon() -> None:
    import torch

    class Model:
        class policy:  # named by the library
            @staticmethod
            def q_net(obs: Any) -> Any:
                return torch.tensor([[0.0, 1.0]]).expand(len(obs), 2)

    obs, generator = torch.zeros(1000, 1), torch.Generator().manual_seed(1)
    assert Player(Model(), 0.0).act(obs, generator).sum() == 1000  # type: ignore[arg-type]
    assert 400 < int(Player(Model(), 1.0).act(obs, generator).sum()) < 600  # type: ignore[arg-type]


def test_an_endless_episode_is_cut_as_in_our_evaluator(monkeypatch: pytest.MonkeyPatch) -> None:
    """The player always takes action 1, for which there is a reward of 1."""
    monkeypatch.setattr("gdi.evaluation.evaluator.MAX_EPISODE_STEPS", 50)
    closed: list[bool] = []

    class Idle:
        def begin(self) -> None: ...

        def act(self, obs: Any, generator: Any) -> Any:
            return torch.ones(len(obs), dtype=torch.int64)

    def watched(config: EnvConfig, episodes: int) -> Any:
        env = make_env(config, episodes)
        close = env.close
        monkeypatch.setattr(env, "close", lambda: closed.append(True) or close())
        return env

    monkeypatch.setattr(peer_play, "make_env", watched)
    returns = play(EnvConfig("own_envs:Own", kwargs=(f"length={10**9}",)), Idle(), 2, 0)  # type: ignore[arg-type]
    assert returns.tolist() == [50.0, 50.0]
    assert closed
