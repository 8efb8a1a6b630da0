"""Environments: the reset semantics, against independent plays of the same games."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from minatar import Environment

from gdi.config import EnvConfig
from gdi.envs import VectorEnv, make_env
from gdi.envs.minatar import GAMES, IDS, MinAtarEnv
from gdi.errors import EnvironmentFaultError, UserError


def copy_seed(seed: int, copies: int, i: int) -> int:
    return int(np.random.SeedSequence(seed).spawn(copies)[i].generate_state(1)[0])


@pytest.mark.parametrize("game", sorted(GAMES))
def test_minatar_equals_the_package_played_alone(game: str) -> None:
    """300 steps of 3 copies against single games, reset by hand one step after each end."""
    env = MinAtarEnv(f"MinAtar/{game}-v0", 3)
    obs = env.reset(5)
    alone = []
    for i in range(3):
        single = Environment(GAMES[game], sticky_action_prob=0.1, difficulty_ramping=True)
        single.seed(copy_seed(5, 3, i))
        single.reset()
        alone.append(single)
    over = [False] * 3
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(300):
        for i, single in enumerate(alone):
            np.testing.assert_array_equal(obs[i], single.state())
        action = rng.integers(6, size=3)
        obs, reward, terminated, truncated = env.step(action)
        assert not truncated.any()
        for i, single in enumerate(alone):
            if over[i]:
                single.last_action = 0
                single.reset()
                assert (reward[i], terminated[i]) == (0, False)
                over[i] = False
            else:
                expected, over[i] = single.act(int(action[i]))
                assert (reward[i], terminated[i]) == (expected, over[i])
                ends += over[i]
    assert ends > 0 or game == "Freeway"


def test_minatar_cuts_an_episode_at_its_step_5000() -> None:
    """Young and Tian 2019 cut there. Freeway has an end of its own only after 2,500 steps, so it is taken away."""
    env = MinAtarEnv("MinAtar/Freeway-v0", 1)
    env.reset(seed=0)
    ends = []
    for step in range(1, 5002):
        env._games[0].env.terminate_timer = 2500
        if env.step(np.zeros(1, np.int64)).truncated.any():
            ends.append(step)
    assert ends == [5000]


def test_minatar_cuts_long_episodes_as_truncation() -> None:
    env = make_env(EnvConfig("MinAtar/Freeway-v0", 2, max_episode_steps=10))
    env.reset(0)
    cuts = [env.step(np.zeros(2, np.int64)).truncated.tolist() for _ in range(25)]
    # 10 steps, one reset step, 10 steps: the 10th and the 21st step are cut.
    assert [t + 1 for t, cut in enumerate(cuts) if cut[0]] == [10, 21]


def test_minimal_action_set() -> None:
    assert make_env(EnvConfig("MinAtar/Breakout-v0", 1)).spec.num_actions == 6
    assert make_env(EnvConfig("MinAtar/Breakout-v1", 1)).spec.num_actions == 3


@pytest.mark.parametrize("env_id", [*IDS[:5], "Toy/Counting-v0"])
def test_saved_environments_continue_as_if_never_stopped(env_id: str) -> None:
    def play(env: VectorEnv, steps: int, rng: np.random.Generator) -> list[np.ndarray]:
        out = []
        for _ in range(steps):
            out += list(env.step(rng.integers(env.spec.num_actions, size=4)))
        return out

    env = make_env(EnvConfig(env_id, 4))
    env.reset(3)
    play(env, 60, np.random.default_rng(0))
    saved = env.state_dict()
    assert saved is not None
    other = make_env(EnvConfig(env_id, 4))
    other.reset(99)
    expected = play(env, 60, np.random.default_rng(1))
    for _ in range(2):  # the second time, the state that was loaded is still as it was saved
        other.load_state_dict(saved)
        for a, b in zip(expected, play(other, 60, np.random.default_rng(1)), strict=True):
            np.testing.assert_array_equal(a, b)


def test_gymnasium_equals_single_environments_reset_by_hand() -> None:
    env = make_env(EnvConfig("CartPole-v1", 3, max_episode_steps=15))
    obs = env.reset(11)
    seeds = [int(s) for s in np.random.SeedSequence(11).generate_state(3)]
    singles = [gymnasium.make("CartPole-v1", max_episode_steps=15) for _ in seeds]
    alone = [single.reset(seed=seed)[0] for single, seed in zip(singles, seeds, strict=True)]
    over = [False] * 3
    rng = np.random.default_rng(0)
    truncations = terminations = 0
    for _ in range(200):
        np.testing.assert_allclose(obs, np.stack(alone), rtol=1e-6)
        action = rng.integers(2, size=3)
        obs, reward, terminated, truncated = env.step(action)
        for i, single in enumerate(singles):
            if over[i]:
                alone[i], over[i] = single.reset()[0], False
                assert (reward[i], terminated[i], truncated[i]) == (0, False, False)
            else:
                alone[i], r, term, trunc, _ = single.step(int(action[i]))
                assert (reward[i], terminated[i], truncated[i]) == (r, term, trunc and not term)
                over[i] = term or trunc
                terminations += term
                truncations += trunc
    assert terminations > 3
    assert truncations > 3


def test_different_seeds_share_no_copy() -> None:
    """Gymnasium's own rule, seed + i, would make run 0 and run 1 the same but for one copy."""
    env = make_env(EnvConfig("CartPole-v1", 4))
    first, second = env.reset(0), env.reset(1)
    assert not any((a == b).all() for a in first for b in second)
    np.testing.assert_array_equal(env.reset(0), first)


class _Offset(gymnasium.Env):
    """Actions 3, 4, 5; the reward is the action."""

    action_space = gymnasium.spaces.Discrete(3, start=3)
    observation_space = gymnasium.spaces.Box(-1, 1, (2, 2), np.float64)

    def reset(self, *, seed=None, options=None):  # type: ignore[no-untyped-def]
        super().reset(seed=seed)
        return np.zeros(self.observation_space.shape, self.observation_space.dtype), {}

    def step(self, action):  # type: ignore[no-untyped-def]
        return np.ones(self.observation_space.shape, self.observation_space.dtype), float(action), False, False, {}


class _NotANumber(_Offset):
    """Its third reward, or third observation, is none."""

    def __init__(self, of: str) -> None:
        self._of, self._steps = of, 0

    def step(self, action):  # type: ignore[no-untyped-def]
        self._steps += 1
        bad = {self._of: np.nan if self._steps == 3 else 0.0}
        return np.full((2, 2), bad.get("observation", 0.0)), bad.get("reward", 0.0), False, False, {}


class _Image(_Offset):
    observation_space = gymnasium.spaces.Box(0, 255, (48, 40, 3), np.uint8)


class _ChannelFirst(_Offset):
    observation_space = gymnasium.spaces.Box(0, 255, (3, 48, 40), np.uint8)


class _Gray(_Offset):
    observation_space = gymnasium.spaces.Box(0, 255, (48, 40), np.uint8)


class _Float(_Offset):
    observation_space = gymnasium.spaces.Box(0, 1, (48, 40, 3), np.float32)


class _Broken(_Offset):
    def __init__(self) -> None:
        raise ImportError("a simulator that is not installed")


gymnasium.register("gdi_test/Gray-v0", _Gray)
gymnasium.register("gdi_test/Float-v0", _Float)
gymnasium.register("gdi_test/Broken-v0", _Broken)
gymnasium.register("gdi_test/Offset-v0", _Offset)
gymnasium.register("gdi_test/BadReward-v0", _NotANumber, kwargs={"of": "reward"})
gymnasium.register("gdi_test/BadObservation-v0", _NotANumber, kwargs={"of": "observation"})
gymnasium.register("gdi_test/Image-v0", _Image)
gymnasium.register("gdi_test/ChannelFirst-v0", _ChannelFirst)


def test_discrete_spaces_that_do_not_start_at_zero() -> None:
    env = make_env(EnvConfig("gdi_test/Offset-v0", 2))
    env.reset(0)
    assert env.step(np.array([0, 2])).reward.tolist() == [3.0, 5.0]


@pytest.mark.parametrize("of", ["reward", "observation"])
def test_nan_and_infinite_values_are_faults(of: str) -> None:
    """One NaN would stay in the controller's estimates for the rest of the run."""
    env_id = f"gdi_test/Bad{of.capitalize()}-v0"
    env = make_env(EnvConfig(env_id, 2))
    env.reset(0)
    for _ in range(2):
        env.step(np.array([0, 0]))
    with pytest.raises(EnvironmentFaultError, match=f"{env_id}', copy 0.*{of}.* is NaN or infinite"):
        env.step(np.array([0, 0]))


def test_observation_shapes() -> None:
    assert make_env(EnvConfig("gdi_test/Offset-v0", 2)).spec.observation_shape == (4,)  # flattened
    image = make_env(EnvConfig("gdi_test/Image-v0", 2)).spec
    assert (image.observation_shape, image.observation_dtype) == ((48, 40, 3), np.uint8)
    gray = make_env(EnvConfig("gdi_test/Gray-v0", 2)).spec
    assert (gray.observation_shape, gray.observation_dtype) == ((48, 40, 1), np.uint8)
    first = make_env(EnvConfig("gdi_test/ChannelFirst-v0", 2)).spec
    assert first == image._replace(reader=first.reader, notes=first.notes)
    real = make_env(EnvConfig("gdi_test/Float-v0", 2)).spec
    assert (real.observation_shape, real.observation_dtype) == ((48, 40, 3), np.float32)


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("CartPole-v9", "CartPole-v1"),
        ("CartPoel-v1", "Did you mean 'CartPole-v1'"),
        ("MinAtar/Brekout-v0", "Did you mean 'MinAtar/Breakout-v0'"),
        ("Breakout-v0", "name it ALE/Breakout-v5"),
        ("Toy/Countin-v0", "Toy/Counting-v0"),
        ("Pendulum-v1", "--env.action-bins"),
        ("gdi_test/Broken-v0", "simulator that is not installed"),
        ("no_such_module:Env-v0", "no module 'no_such_module'"),
    ],
)
def test_environments_that_cannot_be_used_are_told_in_one_line(env_id: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        make_env(EnvConfig(env_id, 2))
    assert "\n" not in str(error.value)
