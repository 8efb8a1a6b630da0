"""The question about GDI-H3: rewards of 1, 10 and 100 by hand, and families that share the Q loss."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from benchmarks import graded_minatar
from benchmarks.graded_minatar import GradedMinAtar
from benchmarks.own_agents import AGENTS, SharedGDI, SharedGDIConfig

from gdi import policy
from gdi.algorithms.gdi import GDI, Head
from gdi.config import GDIConfig
from gdi.envs.minatar import MinAtarEnv
from gdi.envs.registry import make_env
from gdi.networks import AgentOutput
from gdi.presets import PRESETS, make_config
from gdi.sweep.jobs import check_plan, config_of
from gdi.sweep.plan import read_plan
from helpers import transitions

PLAN = Path(__file__).parents[1] / "benchmarks" / "h3_rewards.toml"
IDS = {name: f"benchmarks.graded_minatar:GradedMinAtar/{name}-v0" for name in ("Breakout", "SpaceInvaders")}
NOTHING, LEFT, RIGHT, FIRE = 0, 1, 3, 5


def make(name: str) -> tuple[gymnasium.Env[Any, Any], Any]:
    """Return an environment, and its game without sticky actions."""
    env = gymnasium.make(IDS[name])
    env.reset(seed=0)
    inner = env.unwrapped
    assert isinstance(inner, GradedMinAtar)
    inner.game.act = inner.game.env.act  # type: ignore[method-assign]
    return env, inner.game.env


@pytest.mark.parametrize(("row", "reward"), [(3, 1), (2, 10), (1, 100)])
def test_a_brick_is_worth_what_its_row_says(row: int, reward: int) -> None:
    env, game = make("Breakout")
    game.brick_map[:] = 0
    game.brick_map[row, 4] = 1
    game.ball_x, game.ball_y, game.ball_dir = 3, row + 1, 1  # up and to the right, into the brick
    assert env.step(NOTHING)[1] == reward
    assert game.brick_map.sum() == 0
    assert env.step(NOTHING)[1] == 0


def test_a_new_wall_gives_no_reward() -> None:
    env, game = make("Breakout")
    game.brick_map[:] = 0
    game.ball_x, game.ball_y, game.ball_dir, game.pos = 3, 8, 2, 3
    assert env.step(NOTHING)[1:3] == (0, False)
    assert game.brick_map.sum() == 30


@pytest.mark.parametrize("descended", [0, 3])
@pytest.mark.parametrize(("row", "reward"), [(0, 100), (1, 10), (2, 1), (3, 1)])
def test_an_alien_is_worth_what_its_row_in_the_formation_says(row: int, reward: int, descended: int) -> None:
    """Also after the formation has moved down."""
    env, game = make("SpaceInvaders")
    game.alien_map = np.roll(game.alien_map, descended, axis=0)
    game.top = descended
    game.f_bullet_map[descended + row + 1, 4] = 1  # it moves up by one before it hits
    assert env.step(NOTHING)[1] == reward
    assert game.alien_map.sum() == 23


def test_the_formation_is_followed_down_and_a_new_wave_begins_at_the_top() -> None:
    env, game = make("SpaceInvaders")
    game.alien_map[:] = 0
    game.alien_map[2, 0] = 1  # the third row of the formation, at the left edge
    game.alien_move_timer, game.alien_shot_timer = 0, 99
    assert env.step(NOTHING)[1] == 0
    assert (game.top, int(game.alien_map[3, 0])) == (1, 1)  # it turned around, and moved down
    game.alien_map[1, 5] = 1  # the first row of the formation
    game.alien_move_timer = 99
    game.f_bullet_map[2, 5] = game.f_bullet_map[4, 0] = 1
    assert env.step(NOTHING)[1] == 101  # the last two aliens
    assert (game.top, game.alien_map.sum()) == (0, 24)


@pytest.mark.parametrize("name", list(IDS))
def test_with_a_value_of_1_everywhere_it_is_minatar(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same observations, rewards and ends, with sticky actions and ramping."""
    monkeypatch.setattr(graded_minatar, "BRICK_ROWS", {1: 1, 2: 1, 3: 1})
    monkeypatch.setattr(graded_minatar, "ALIEN_ROWS", np.ones(4, int))
    native, graded = MinAtarEnv(f"MinAtar/{name}-v0", 1), GradedMinAtar(getattr(graded_minatar, f"Graded{name}"))
    first = native.reset(3)
    seed = int(np.random.SeedSequence(3).spawn(1)[0].generate_state(1)[0])
    assert np.array_equal(graded.reset(seed=seed)[0], first[0])
    rng, episodes, total = np.random.default_rng(0), 0, 0.0
    for _ in range(4000):
        action = int(rng.choice([NOTHING, LEFT, RIGHT, FIRE]))
        step, (obs, reward, terminated, _, _) = native.step(np.array([action])), graded.step(action)
        assert np.array_equal(obs, step.obs[0])
        assert (reward, terminated) == (step.reward[0], step.terminated[0])
        total += reward
        if terminated:
            episodes += 1
            assert np.array_equal(native.step(np.array([0])).obs[0], graded.reset()[0])
    assert episodes > 20
    assert total > 20


@pytest.mark.parametrize("name", list(IDS))
def test_the_network_sees_it_as_minatar_and_a_seed_repeats_it(name: str) -> None:
    config = make_config("gdi-i3", IDS[name], scale="minatar").env
    one, two, native = make_env(config, 3), make_env(config, 3), MinAtarEnv(f"MinAtar/{name}-v0", 1)
    assert one.spec[:3] == native.spec[:3]
    assert np.array_equal(one.reset(5), two.reset(5))
    rng = np.random.default_rng(0)
    for _ in range(200):
        action = rng.integers(0, 6, 3)
        for a, b in zip(one.step(action), two.step(action), strict=True):
            assert np.array_equal(a, b)


def test_the_families_share_the_q_loss_as_they_share_the_policy_gradient() -> None:
    """The gradient of family i is that of GDI times w_i·π_i(a) / π(a), and these weights sum to 1."""
    generator = torch.Generator().manual_seed(0)
    steps, batch, actions = 4, 3, 5
    index = torch.tensor([3.0, 1.5, 0.3]).expand(steps + 1, batch, 3)
    data = transitions(
        index,
        action=torch.randint(0, actions, (steps, batch), generator=generator),
        reward=torch.rand(steps, batch, generator=generator) * 100,
        behavior_prob=torch.full((steps, batch), 0.3),
        terminated=torch.zeros(steps, batch, dtype=torch.bool),
        mask=torch.ones(steps, batch, dtype=torch.bool),
    )
    advantage = torch.randn(steps + 1, batch, 2, actions, generator=generator)
    value = torch.randn(steps + 1, batch, 2, generator=generator)
    settings: dict[str, Any] = {
        "reward_shapes": ("log", "root"),
        "reward_scales": (0.15, 1.0),
        "v_loss_scale": 0.0,
        "policy_loss_scale": 0.0,
        "forward_dynamics_scale": 0.0,
        "inverse_dynamics_scale": 0.0,
    }

    def gradient(algorithm: GDI) -> torch.Tensor:
        a = advantage.clone().requires_grad_()
        output = AgentOutput(Head(a, value), [], torch.zeros(1))
        total = algorithm.loss(None, output, data, health=True).total  # type: ignore[arg-type]
        return torch.autograd.grad(total, a)[0][:-1]

    first, second = policy.component_log_probs(advantage[:-1], index[:-1])
    parts = torch.stack([first, second], 2).exp()
    taken = parts.gather(-1, data.action[..., None, None].expand(-1, -1, 2, 1))
    share = taken / taken.sum(2, keepdim=True)
    whole = gradient(GDI(GDIConfig(**settings)))
    assert whole.abs().sum() > 0
    torch.testing.assert_close(gradient(SharedGDI(SharedGDIConfig(**settings))), share * whole)


def test_each_agent_of_the_plan_differs_by_its_part_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, preset in AGENTS.items():
        monkeypatch.setitem(PRESETS, name, preset)
    jobs = {job.agent: job for job in check_plan(read_plan(PLAN))}
    found = {name: config_of(job) for name, job in jobs.items()}
    assert set(found) == {"gdi-i3", "gdi-i3+root", "gdi-h3", "gdi-h3+log", "gdi-h3-shared"}
    shapes = {name: (one.learner.reward_shapes, one.learner.reward_scales) for name, one in found.items()}
    assert shapes["gdi-i3"] == (("log",), (0.15,))
    assert shapes["gdi-h3"] == shapes["gdi-h3-shared"] == (("log", "root"), (0.15, 1.0))
    assert shapes["gdi-h3+log"] == (("log", "log"), (0.15, 0.15))
    plain = replace(found["gdi-h3-shared"], preset="gdi-h3", learner=found["gdi-h3"].learner, seed=found["gdi-h3"].seed)
    assert plain == found["gdi-h3"]
