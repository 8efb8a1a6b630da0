"""Environments in every form: ids, classes, files, functions, specs, vector environments, and processes."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics

import gdi
from gdi.cli.main import main
from gdi.config import EnvConfig
from gdi.envs import VectorEnv, make_env
from gdi.errors import UserError
from gdi.evaluation import Evaluator
from gdi.runtime.checkpoint import CheckpointStore
from gdi.runtime.factories import make_player
from gdi.runtime.folder import read_config
from helpers import error_line, read_metric_lines, saved_network, tiny_config
from own_envs import Own, make_own

FILE = Path(__file__).parent / "own_envs.py"
TINY = [
    *("--steps", "200", "--num-envs", "4", "--evaluation.episodes", "2", "--threads", "1", "--data.replay", "1"),
    *("--data.batch-size-sequences", "4", "--data.sequence-steps", "5", "--network.hidden-units", "8"),
]


def played(env: VectorEnv, steps: int = 12) -> list[np.ndarray]:
    """Return everything that the environment tells in some steps."""
    told = [env.reset(5)]
    rng = np.random.default_rng(0)
    for _ in range(steps):
        step = env.step(rng.integers(env.spec.num_actions, size=env.num_envs))
        told += [*step, *env.beside]
    env.close()
    return told


def assert_equal(one: list[np.ndarray], other: list[np.ndarray]) -> None:
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def sync(num_envs: int = 3, mode: AutoresetMode = AutoresetMode.NEXT_STEP) -> SyncVectorEnv:
    return SyncVectorEnv([functools.partial(Own, length=4)] * num_envs, autoreset_mode=mode)


FORMS: dict[str, tuple[Any, str]] = {
    "id": ("own_envs:own_envs/Registered-v0", "own_envs:own_envs/Registered-v0"),
    "name of a class": ("own_envs:Own", "own_envs:Own"),
    "name of a function": ("own_envs:make_own", "own_envs:make_own"),
    "file": (f"{FILE}:Own", f"{FILE}:Own"),
    "id in a file": (f"{FILE}:own_envs/Registered-v0", f"{FILE}:own_envs/Registered-v0"),
    "class": (Own, "own_envs:Own"),
    "function": (make_own, "own_envs:make_own"),
    "partial": (functools.partial(Own, length=2), "given/Own"),
    "lambda": (lambda: Own(length=2), "given/<lambda>"),
    "spec": (gymnasium.spec("CartPole-v1"), "CartPole-v1"),
    "spec with arguments": (gymnasium.make("CartPole-v1", sutton_barto_reward=True).spec, "given/CartPole-v1"),
    "instance": (gymnasium.make("CartPole-v1"), "CartPole-v1"),
    "vector class": (functools.partial(sync), "given/sync"),
    "vector function": (sync, "test_forms:sync"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_named_and_made(form: str) -> None:
    env, name = FORMS[form]
    config = gdi.make_config("gdi-i3", env)
    assert config.env.id == name
    assert config.env.num_envs == 32
    assert len(played(make_env(config.env, 3))) == 1 + 12 * 6


def test_a_class_and_its_names_are_the_same_environment() -> None:
    class_ = played(make_env(gdi.make_config("gdi-i3", Own).env, 3))
    assert_equal(class_, played(make_env(EnvConfig("own_envs:Own"), 3)))
    assert_equal(class_, played(make_env(EnvConfig(f"{FILE}:Own"), 3)))


def test_an_instance_of_a_vector_environment_has_its_own_number_of_copies() -> None:
    vectors = gymnasium.make_vec("CartPole-v1", num_envs=5, vectorization_mode="sync")
    config = gdi.make_config("gdi-i3", vectors)
    assert (config.env.id, config.env.num_envs) == ("given/SyncVectorEnv", 5)
    for num_envs in (5, 2):  # training and evaluation make their own from its spec
        made = make_env(config.env, num_envs)
        played(made)
        made.close()
        assert made.num_envs == num_envs
    assert vectors.envs[0].unwrapped.state is None  # the instance itself was never reset
    assert not vectors.closed
    for other, what in ((sync(), "has no spec"), (RecordEpisodeStatistics(vectors), "is wrapped")):
        with pytest.raises(UserError, match=f"{what}, .*: pass a function of num_envs"):
            gdi.make_config("gdi-i3", other)


def test_arguments_and_limits_arrive() -> None:
    env = make_env(EnvConfig("own_envs:Own", kwargs=('observe="image"', "length=3")), 2)
    assert env.spec.observation_shape == (12, 10, 3)
    assert [bool(step.any()) for step in played(env, 4)[3::6]] == [False, False, True, False]  # terminated after 3
    cut = make_env(EnvConfig("own_envs:Own", max_episode_steps=2), 2)
    assert [bool(step.any()) for step in played(cut, 3)[4::6]] == [False, True, False]  # truncated after 2


def test_wrappers_are_applied_innermost_first() -> None:
    config = EnvConfig("CartPole-v1", wrappers=("own_envs:Shift", "gymnasium.wrappers:TimeAwareObservation"))
    env = make_env(config, 2)
    assert env.spec.observation_shape == (5,)
    env.reset(0)
    assert env.step(np.zeros(2, np.int64)).reward.tolist() == [101.0, 101.0]
    assert make_env(replace(config, wrappers=()), 2).spec.observation_shape == (4,)


@pytest.fixture
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the user's file, which is the current folder; afterwards its module is forgotten."""
    (tmp_path / "users_env.py").write_text(FILE.read_text().replace("own_envs/Registered", "users_env/Registered"))
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    sys.modules.pop("users_env", None)
    gymnasium.registry.pop("users_env/Registered-v0", None)


@pytest.mark.parametrize("name", ["users_env.py:Own", "users_env:Own", "users_env:users_env/Registered-v0"])
def test_the_command_line_finds_environments_of_the_current_folder(name: str, own_file: Path) -> None:
    assert main(["train", "--env", name, "--run-dir", "run", *TINY]) == 0
    assert main(["evaluate", "run", "--episodes", "2", "--trust"]) == 0


@pytest.mark.parametrize(
    "words",
    [
        "FrozenLake-v1",
        "Taxi-v4",
        "Blackjack-v1",
        "CliffWalking-v1 --env.max-episode-steps 20",
        "Acrobot-v1 --env.max-episode-steps 20",
        "MountainCar-v0 --env.max-episode-steps 20",
        "LunarLander-v3 --env.max-episode-steps 20",
        "Pendulum-v1 --env.max-episode-steps 20 --env.action-bins 5",
        "minigrid:MiniGrid-DoorKey-5x5-v0 --env.max-episode-steps 20",
        "masked_envs:Masked",
    ],
)
def test_known_environments_train_from_the_command_line(words: str, tmp_path: Path) -> None:
    env, *options = words.split()
    assert main(["train", "--env", env, *options, "--run-dir", str(tmp_path / "run"), *TINY]) == 0


def test_a_run_of_a_file_resumes_from_any_folder(
    own_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["train", "--env", "users_env.py:Own", "--env.kwargs", "length=3", "--run-dir", "run", *TINY]
    assert main(argv) == 0
    assert read_config(own_file / "run", trust=True).env.id == f"{own_file}/users_env.py:Own"
    assert main([*argv, "--resume"]) == 0  # named once more, relative
    (own_file / "other").mkdir()
    monkeypatch.chdir(own_file / "other")
    sys.modules.pop("users_env")
    assert main(["train", "--run-dir", "../run", "--resume", "--trust"]) == 0
    capsys.readouterr()
    (own_file / "users_env.py").unlink()
    sys.modules.pop("users_env")
    assert "there is no file" in error_line(["train", "--run-dir", "../run", "--resume", "--trust"], capsys)


def test_a_script_is_not_run_again_for_its_own_class(tmp_path: Path) -> None:
    import subprocess

    script = tmp_path / "script.py"
    script.write_text(
        "import gdi\nfrom own_envs import Own\nprint('run')\nclass Mine(Own): pass\n"
        "config = gdi.make_config('gdi-i3', Mine)\nfrom gdi.envs import make_env\n"
        "from dataclasses import replace\nprint(config.env.id)\n"
        "print(make_env(replace(config.env, given=None), 2).spec.num_actions)\n"
    )
    told = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, cwd=FILE.parent,
                          env={**__import__("os").environ, "PYTHONPATH": ":".join(sys.path)})  # fmt: skip
    assert told.stdout.split() == ["run", f"{script}:Mine", "3"]


# ------------------------------------------------------------------------------------------------- vector environments


def test_a_vector_environment_that_resets_on_the_next_step_is_played_as_it_is() -> None:
    env = make_env(gdi.make_config("gdi-i3", sync).env, 2)
    env.reset(0)
    ends = [bool(env.step(np.ones(2, np.int64)).terminated.all()) for _ in range(11)]
    assert [t for t, end in enumerate(ends, 1) if end] == [4, 9]  # 4 steps, a reset, 4 steps


class Counting(gymnasium.Env[Any, Any]):
    """The observation is [episode, clock]; the reward is the clock; every third episode is truncated."""

    observation_space = gymnasium.spaces.Box(0, 99, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self) -> None:
        self.episode, self.clock = -1, 0

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.episode, self.clock = (0 if seed is not None else self.episode + 1), 0
        return np.float32([self.episode, 0]), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.clock += 1
        end = self.clock == 4
        cut = self.episode % 3 == 2
        return np.float32([self.episode, self.clock]), float(self.clock), end and not cut, end and cut, {}


class MaskedCounting(Counting):
    """The same with action masks, which allow everything."""

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return super().reset(seed=seed)[0], {"action_mask": np.ones(2, np.int8)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return (*super().step(action)[:4], {"action_mask": np.ones(2, np.int8)})


def counting(num_envs: int, mode: AutoresetMode) -> SyncVectorEnv:
    return SyncVectorEnv([Counting] * num_envs, autoreset_mode=mode)


def test_the_same_step_mode_shows_final_observations_and_keeps_the_return() -> None:
    env = make_env(gdi.make_config("gdi-i3", functools.partial(counting, mode=AutoresetMode.SAME_STEP)).env, 2)
    env.reset(0)
    steps = [env.step(np.zeros(2, np.int64)) for _ in range(12)]
    # The first episode is seen whole, up to its final observation. Later ones begin after a first step, whose reward
    # comes with the reset: 1, then 2 + 3 + 4.
    assert [step.obs[0].tolist() for step in steps[:9]] == [
        [0, 1], [0, 2], [0, 3], [0, 4], [1, 1], [1, 2], [1, 3], [1, 4], [2, 1],
    ]  # fmt: skip
    assert [float(step.reward[0]) for step in steps[:8]] == [1, 2, 3, 4, 1, 2, 3, 4]
    assert [t for t, step in enumerate(steps) if step.terminated[0]] == [3, 7]
    assert [t for t, step in enumerate(steps) if step.truncated[0]] == [11]


def test_an_evaluation_counts_the_reward_of_a_reset_step() -> None:
    """In the same-step mode it is the reward of an episode's first step: 1 + 2 + 3 + 4 for each episode."""
    config = gdi.make_config("gdi-i3", functools.partial(counting, mode=AutoresetMode.SAME_STEP))
    env = make_env(config.env, 2)
    evaluator = Evaluator(config.env, env, make_player(config, env.spec, 2, torch.device("cpu")))
    params = make_player(config, env.spec, 2, torch.device("cpu")).network.state_dict()
    found = evaluator.evaluate(params, lambda env, rng: (1.0, 1.0, 0.5), 12, seed=0)
    assert found is not None
    assert found.returns == (10.0,) * 12


def test_action_masks_need_the_next_step_mode() -> None:
    def masked(num_envs: int, mode: AutoresetMode, claimed: Any) -> SyncVectorEnv:
        env = SyncVectorEnv([MaskedCounting] * num_envs, autoreset_mode=mode)
        env.metadata = {} if claimed is None else {"autoreset_mode": claimed}
        return env

    same, following = AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP
    assert played(make_env(gdi.make_config("dqn", functools.partial(masked, mode=following, claimed=None)).env, 2))
    for claimed in (same, None):
        with pytest.raises(UserError, match="action masks and the autoreset mode SameStep: make it with"):
            played(make_env(gdi.make_config("dqn", functools.partial(masked, mode=same, claimed=claimed)).env, 2))


def test_other_modes_and_broken_contracts_are_refused() -> None:
    with pytest.raises(UserError, match="autoreset mode Disabled"):
        make_env(gdi.make_config("gdi-i3", functools.partial(counting, mode=AutoresetMode.DISABLED)).env, 2)

    def lying(num_envs: int, mode: AutoresetMode, claimed: Any) -> SyncVectorEnv:
        env = counting(num_envs, mode)
        env.metadata = {} if claimed is None else {"autoreset_mode": claimed}
        return env

    same, following = AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP
    for mode, claimed, message in (
        (same, following, "plays the step after an episode's end"),
        (following, same, "its info has no final_obs"),
    ):
        env = make_env(gdi.make_config("gdi-i3", functools.partial(lying, mode=mode, claimed=claimed)).env, 2)
        env.reset(0)
        with pytest.raises(UserError, match=message):
            played(env)
    for mode in (same, following):  # EnvPool tells no mode: the first end of an episode shows it
        env = make_env(gdi.make_config("gdi-i3", functools.partial(lying, mode=mode, claimed=None)).env, 2)
        env.reset(0)
        assert [env.step(np.zeros(2, np.int64)).obs[0].tolist() for _ in range(4)][-1] == [0, 4]


def test_gymnasiums_own_processes_may_be_given() -> None:
    def processes(num_envs: int) -> AsyncVectorEnv:
        return AsyncVectorEnv([Counting] * num_envs, autoreset_mode=AutoresetMode.NEXT_STEP)

    env = make_env(gdi.make_config("gdi-i3", processes).env, 2)
    assert_equal(
        played(env),
        played(make_env(gdi.make_config("gdi-i3", functools.partial(counting, mode=AutoresetMode.NEXT_STEP)).env, 2)),
    )


# ----------------------------------------------------------------------------------------------------------- processes


@pytest.mark.parametrize("processes", [1, 2, 3, 9])
def test_processes_play_bit_by_bit_what_one_process_plays(processes: int) -> None:
    for config in (EnvConfig("CartPole-v1"), EnvConfig("Taxi-v4"), EnvConfig("own_envs:Own", kwargs=("length=3",))):
        assert_equal(played(make_env(config, 5), 40), played(make_env(replace(config, processes=processes), 5), 40))


def test_a_run_with_processes_equals_one_without(tmp_path: Path) -> None:
    config = tiny_config("CartPole-v1", steps=1_200)
    one = gdi.train(config, tmp_path / "one")
    two = gdi.train(replace(config, env=replace(config.env, processes=2)), tmp_path / "two")
    assert read_metric_lines(one.run_dir) == read_metric_lines(two.run_dir)
    for name, value in saved_network(one.run_dir).items():
        np.testing.assert_array_equal(value, saved_network(two.run_dir)[name])
    assert CheckpointStore(two.run_dir / "checkpoints", 1, pytest.fail).newest() is not None


def test_an_error_in_a_process_is_one_line() -> None:
    with pytest.raises(UserError, match=r"cannot make environment 'own_envs:Own': TypeError.*nonsense") as error:
        make_env(EnvConfig("own_envs:Own", kwargs=("nonsense=1",), processes=2), 4)
    assert "\n" not in str(error.value)
