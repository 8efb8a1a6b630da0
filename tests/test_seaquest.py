"""The question about Seaquest: what its agents change, by hand, and what its player counts in scripted episodes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks import own_agents, seaquest_play
from benchmarks.own_agents import AGENTS, ExpectedDQN, ExpectedDQNConfig, MaxGDI, MaxGDIConfig, SoftmaxDQN

from gdi import policy
from gdi.algorithms import Transitions, make_algorithm
from gdi.algorithms.dqn import Head as DQNHead
from gdi.algorithms.gdi import Head
from gdi.config import FixedConfig, differences
from gdi.controller import make_controller
from gdi.controller.static import UniformController
from gdi.envs import minatar
from gdi.envs.minatar import MinAtarEnv
from gdi.networks import AgentOutput
from gdi.presets import PRESETS, make_config
from gdi.sweep.jobs import check_plan, config_of
from gdi.sweep.plan import read_plan
from helpers import seen_of

PLAN = Path(__file__).parents[1] / "benchmarks" / "seaquest.toml"
DOWN, UP, NOTHING = 4, 2, 0


# ------------------------------------------------------------------------------------------------- the agents


def data_of(index: torch.Tensor, **changes: Any) -> Transitions:
    """One step of one environment: action 1, reward 1, acted with probability 0.4."""
    zeros = torch.zeros(2, 1)
    data = Transitions(
        seen=seen_of(zeros, zeros, zeros, zeros, index),
        action=torch.tensor([[1]]),
        reward=torch.tensor([[1.0]]),
        terminated=torch.tensor([[False]]),
        truncated=torch.tensor([[False]]),
        mask=torch.tensor([[True]]),
        behavior_prob=torch.tensor([[0.4]]),
    )
    return data._replace(**changes)


@pytest.mark.parametrize("greedy", [True, False])
def test_the_targets_of_gdi_max_evaluate_the_greedy_policy(greedy: bool) -> None:
    """Q = V + A − max A. V learns from greedy actions only, and Q from V(s'), which is max_a Q(s', a)."""
    learner = MaxGDIConfig(reward_shapes=("none",), reward_scales=(1.0,), discount=0.9, rho_bar=0.5, c_bar=0.5)
    best, other = (0.7, 0.3) if greedy else (0.3, 0.7)  # of the action taken, and of the other one
    advantage = torch.tensor([[[[other, best]]], [[[5.0, 6.0]]]])
    head = Head(advantage, torch.tensor([[[2.0]], [[3.0]]]))
    index = torch.tensor([1.0, 1.0, 0.5]).expand(2, 1, 3)
    found = MaxGDI(learner).estimates(head, data_of(index))
    one_step = 1.0 + 0.9 * 3.0
    assert found.q_target.item() == pytest.approx(one_step)
    assert found.q_taken.item() == pytest.approx(2.0 + best - 0.7)
    assert found.v_target[0].item() == pytest.approx(2.0 + 0.5 * (one_step - 2.0) if greedy else 2.0)
    ratio = np.exp(best) / (np.exp(best) + np.exp(other)) / 0.4  # π under λ, for the policy gradient
    assert found.ratio.item() == pytest.approx(ratio, rel=1e-5)
    assert found.gain.item() == pytest.approx(0.5 * (1.0 + 0.9 * 3.0 - 2.0))


def td_error(algorithm: Any, index: torch.Tensor) -> float:
    """Return y − Q(s, a), where Q(s, a) = 0 and Q⁻ of the next state is (3, 4, 1, 0)."""
    after = torch.tensor([3.0, 4.0, 1.0, 0.0]).view(1, 1, 1, 4)
    data = data_of(index, target=AgentOutput(DQNHead(after), [], torch.zeros(1)))
    online = AgentOutput(DQNHead(torch.zeros(1, 1, 1, 4)), [], torch.zeros(1))
    return float(algorithm.loss(None, online, data, health=True).metrics["value/target_mean"])


def test_the_target_of_dqn_expected_is_the_mean_under_the_policy_that_acted() -> None:
    learner = ExpectedDQNConfig(discount=0.9, reward_clip=0.0)
    epsilon = torch.tensor([0.9, 0.2]).view(2, 1, 1)  # of the acted row, and of the bootstrap row
    assert td_error(ExpectedDQN(learner), epsilon) == pytest.approx(1 + 0.9 * (0.2 * 2.0 + 0.8 * 4.0))


def test_dqn_softmax_acts_as_gdi_and_only_its_expected_form_averages() -> None:
    index = torch.tensor([2.0, 0.5, 0.25]).expand(2, 1, 3)
    q = torch.tensor([3.0, 4.0, 1.0, 0.0]).view(1, 1, 1, 4)
    one = seen_of(*[torch.zeros(1, 1)] * 4, index[:1])
    learner = own_agents.SoftmaxDQNConfig(discount=0.9, reward_clip=0.0)
    own = SoftmaxDQN(learner).log_probs(DQNHead(q), one)
    assert torch.equal(own, policy.log_probs(q, index[:1]))
    assert td_error(SoftmaxDQN(learner), index) == pytest.approx(1 + 0.9 * 4.0)
    mean = float((own.exp() * q[:, :, 0]).sum())
    averaging = own_agents.ExpectedSoftmaxDQNConfig(discount=0.9, reward_clip=0.0)
    assert td_error(make_algorithm(replace(make_config("dqn", "CartPole-v1"), learner=averaging)), index) == (
        pytest.approx(1 + 0.9 * mean)
    )


def test_a_class_that_extends_one_of_ours_is_built_by_itself() -> None:
    """Both factories knew it by its base, and built that without a word."""

    class Mine(UniformController):
        slots = 7

    @dataclass(frozen=True)
    class Fixed(FixedConfig):
        def build(self, space: Any, rng: Any) -> Any:
            return Mine(space, rng)

    config = replace(make_config("dqn", "CartPole-v1"), learner=ExpectedDQNConfig(), controller=Fixed())
    assert type(make_algorithm(config)) is ExpectedDQN
    assert make_controller(config).slots == Mine.slots


# --------------------------------------------------------------------------------------------------- the plan


def test_each_variant_of_the_plan_differs_from_its_preset_by_its_part_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, preset in AGENTS.items():
        monkeypatch.setitem(PRESETS, name, preset)
    jobs = {job.agent: job for job in check_plan(read_plan(PLAN)) if job.seed == 200}
    changed = {
        name: sorted({field for field, _, _ in differences(config_of(jobs[base]), config_of(jobs[name]))} - {"preset"})
        for base, name in [
            ("gdi-i3", "gdi-max"),
            ("gdi-i3", "gdi-i3+memory"),
            ("gdi-i3", "gdi-i3+no-gradient"),
            ("gdi-i3+no-gradient", "gdi-i3+memory-no-gradient"),
            ("gdi-i3+memory", "gdi-max+memory"),
            ("dqn", "dqn-expected"),
            ("dqn", "dqn+small-memory"),
            ("dqn", "dqn+eight-uses"),
            ("dqn", "dqn-softmax"),
            ("dqn-softmax", "dqn-softmax-expected"),
        ]
    }
    assert changed == {
        "gdi-max": ["learner"],
        "gdi-i3+memory": ["data"],
        "gdi-i3+no-gradient": ["learner.policy_loss_scale"],
        "gdi-i3+memory-no-gradient": ["data"],
        "gdi-max+memory": ["learner"],
        "dqn-expected": ["learner"],
        "dqn+small-memory": ["data.capacity_transitions"],
        "dqn+eight-uses": ["data"],
        "dqn-softmax": ["controller", "index_space", "learner"],
        "dqn-softmax-expected": ["learner"],
    }


TINY = """
envs = ["MinAtar/Seaquest-v0"]
presets = {presets}
seeds = "0"
steps = 600
[settings]
env.num_envs = 4
network.hidden_units = 16
data.sequence_steps = 5
evaluation.episodes = 2
run.device = "cpu"
run.states_per_stage = 0
[preset.dqn-softmax-expected]
data.learn_start_transitions = 100
"""


@pytest.mark.long
def test_a_sweep_trains_own_agents_and_the_player_plays_them(tmp_path: Path) -> None:
    plan = tmp_path / "tiny.toml"
    plan.write_text(TINY.format(presets='["gdi-max", "dqn-softmax-expected"]'))
    command = [sys.executable, "-m", "benchmarks.own_sweep", str(plan), "--out", str(tmp_path / "out"), "-j", "2"]
    ended = subprocess.run(command, cwd=PLAN.parents[1], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert seaquest_play.main([str(tmp_path / "out"), "--episodes", "2"]) == 0
    rows = (tmp_path / "out" / "episodes-played.csv").read_text().splitlines()
    assert len(rows) == 1 + 2 * 2 * 2
    assert rows[0].startswith("agent,run,trained_steps,mode,episode,score,steps,surfacings")


# -------------------------------------------------------------------------------------------------- the player


@pytest.fixture
def game(monkeypatch: pytest.MonkeyPatch) -> tuple[MinAtarEnv, Any]:
    """A calm sea: actions do what they say, and nothing appears."""
    monkeypatch.setattr(minatar, "STICKY_ACTION_PROB", 0.0)
    env = MinAtarEnv("MinAtar/Seaquest-v0", 1)
    env.reset(0)
    own = env._games[0].env
    own.e_spawn_timer = own.d_spawn_timer = 10**6
    return env, own


def script(*actions: int, before: Callable[[int], None] = lambda step: None) -> Callable[[Any], int]:
    """Return a policy that plays these actions, and then none; ``before`` is called with the number of each step."""
    steps = iter(range(10**6))

    def act(observation: Any) -> int:
        step = next(steps)
        before(step)
        return actions[step] if step < len(actions) else NOTHING

    return act


def test_surfacings_and_divers_are_counted(game: tuple[MinAtarEnv, Any]) -> None:
    env, own = game
    own.divers = [[5, 1, True, 5], [5, 2, True, 9]]
    act = script(DOWN, DOWN, UP, UP, DOWN, UP, DOWN, UP)  # two divers, a surfacing for each, and one without
    found = seaquest_play.play(env, env._observe(), act)
    assert (found.surfacings, found.full_surfacings, found.divers, found.end) == (2, 0, 2, "no-diver")
    assert (found.steps, found.oxygen, found.score) == (8, 199, 0.0)


def test_surfacing_with_six_divers_is_told_apart(game: tuple[MinAtarEnv, Any]) -> None:
    env, own = game

    def load(step: int) -> None:
        if step == 0:
            own.diver_count = 6
        if step == 3:
            own.e_fish = [[5, 0, True, 5]]  # a fish at the surface ends the episode

    found = seaquest_play.play(env, env._observe(), script(DOWN, UP, NOTHING, NOTHING, before=load))
    assert (found.surfacings, found.full_surfacings, found.end, found.score) == (1, 1, "hit", 9.0)


def test_an_empty_tank_ends_the_episode(game: tuple[MinAtarEnv, Any]) -> None:
    """The last step begins with an oxygen of 0, after 200 steps below the surface."""
    found = seaquest_play.play(game[0], game[0]._observe(), script(DOWN))
    assert (found.steps, found.oxygen, found.end, found.surfacings) == (201, 0, "oxygen", 0)


def test_the_limit_of_steps_is_told_apart(game: tuple[MinAtarEnv, Any]) -> None:
    env, _ = game
    env._max_episode_steps = 7
    found = seaquest_play.play(env, env._observe(), script())  # it waits at the surface
    assert (found.steps, found.end) == (7, "limit")


def test_a_folder_without_runs_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert seaquest_play.main([str(tmp_path)]) == 2
    assert "has no run folder" in capsys.readouterr().err
