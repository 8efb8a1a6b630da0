"""Every observation and action space as arrays and numbers, by arithmetic."""

from __future__ import annotations

import pickle
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces

import gdi
from gdi.config import EnvConfig
from gdi.envs import make_env
from gdi.envs.actions import Actions
from gdi.envs.spaces import Observations, batch_of_one
from gdi.errors import UserError
from gdi.networks.beside import Normalizer
from helpers import change, seen_of, tiny_config
from own_envs import SPACES, Own

# Shape as the network sees it, and the width of the vector beside it.
SHAPES: dict[str, tuple[tuple[int, ...], int]] = {
    "vector": ((3,), 0),
    "matrix": ((6,), 0),
    "image": ((12, 10, 3), 0),
    "gray": ((12, 10, 1), 0),
    "first": ((12, 10, 3), 0),
    "float": ((12, 10, 3), 0),
    "stack": ((12, 10, 12), 0),
    "discrete": ((4,), 0),
    "binary": ((4,), 0),
    "multi": ((5,), 0),
    "tuple": ((5,), 0),
    "dict": ((4,), 0),
    "mixed": ((12, 10, 3), 2),
    "images": ((12, 10, 4), 0),
}


def converted(name: str, *observations: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return these observations of a space as one converted batch."""
    space = SPACES[name]
    found = [Observations("test", space).convert(batch_of_one(space, one)) for one in observations]
    return np.concatenate([obs for obs, _ in found]), np.concatenate([vector for _, vector in found])


def test_choices_become_one_hot() -> None:
    np.testing.assert_array_equal(converted("discrete", 2, 5)[0], [[1, 0, 0, 0], [0, 0, 0, 1]])  # it starts at 2
    np.testing.assert_array_equal(converted("multi", np.array([2, 1]))[0], [[0, 1, 0, 1, 0]])  # starts at 1 and 0
    np.testing.assert_array_equal(converted("binary", np.array([[1, 0], [0, 1]]))[0], [[1, 0, 0, 1]])


def test_nested_spaces_are_joined_in_their_own_order() -> None:
    np.testing.assert_array_equal(converted("tuple", (2, np.float32([0.5, -1])))[0], [[0, 0, 1, 0.5, -1]])
    both = {"a": {"deep": np.float32([0.25, 0.75])}, "b": 1}  # Gymnasium sorts the names
    np.testing.assert_array_equal(converted("dict", both)[0], [[0.25, 0.75, 0, 1]])


def test_images_keep_their_pixels() -> None:
    image = np.arange(360, dtype=np.uint8).reshape(12, 10, 3)
    np.testing.assert_array_equal(converted("image", image)[0], image[None])
    np.testing.assert_array_equal(converted("first", image.transpose(2, 0, 1))[0], image[None])
    np.testing.assert_array_equal(converted("gray", image[..., 0])[0], image[None, ..., :1])
    stack = np.stack([image + 1, image + 2, image + 3, image + 4])
    np.testing.assert_array_equal(converted("stack", stack)[0][0, :, :, 3:6], image + 2)


def test_vectors_stand_beside_an_image_and_text_is_left_out() -> None:
    image = np.full((12, 10, 3), 7, np.uint8)
    obs, vector = converted("mixed", {"view": image, "speed": np.float32([0.5, -0.5]), "said": "go"})
    np.testing.assert_array_equal(obs, image[None])
    np.testing.assert_array_equal(vector, [[0.5, -0.5]])
    (note,) = Observations("test", SPACES["mixed"]).notes
    assert "12x10x3 and 2 numbers beside it; text left out: said" in note
    assert Observations("test", SPACES["vector"]).notes == ()


@pytest.mark.parametrize("name", SHAPES)
def test_every_space_is_played_and_seen_by_the_agent(name: str) -> None:
    env = make_env(gdi.make_config("dqn", partial(Own, name)).env, 3)
    shape, width = SHAPES[name]
    obs = env.reset(0)
    assert (env.spec.observation_shape, env.spec.vector_width) == (shape, width)
    for _ in range(12):
        assert (obs.shape, obs.dtype) == ((3, *shape), env.spec.observation_dtype)
        assert env.beside.vector.shape == (3, width)
        obs = env.step(np.zeros(3, np.int64)).obs
    assert env.spec.reader is not None
    one, beside = env.spec.reader.observe(SPACES[name].sample(), None)
    assert (one.shape, beside.vector.shape) == ((1, *shape), (1, width))
    pickle.dumps(env.spec)  # it travels between processes
    env.close()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("text", "observations of text only"),
        ("sequence", "Sequence observations, which have no fixed size"),
        ("sizes", "images of several kinds"),
        ("empty", "empty observations"),
        ("huge", "1,000,000 choices"),
    ],
)
def test_other_observations_are_refused_in_one_line(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        Observations("test", SPACES[name])
    assert "\n" not in str(error.value)


def test_products_of_choices_are_numbered() -> None:
    actions = Actions("test", spaces.MultiDiscrete([2, 3], start=[1, 0]))
    assert actions.count == 2 * 3
    np.testing.assert_array_equal(actions.own(np.array([0, 1, 3, 5])), [[1, 0], [1, 1], [2, 0], [2, 2]])
    assert actions.notes == ("Actions: MultiDiscrete (2x3) becomes 6 discrete actions",)
    binary = Actions("test", spaces.MultiBinary(3))
    np.testing.assert_array_equal(binary.own(np.array([0, 5, 7])), [[0, 0, 0], [1, 0, 1], [1, 1, 1]])
    np.testing.assert_array_equal(Actions("test", spaces.Discrete(3, start=3)).own(np.array([0, 2])), [3, 5])


def test_a_box_becomes_a_grid() -> None:
    actions = Actions("test", spaces.Box(np.float32([-2, 0]), np.float32([2, 1]), dtype=np.float32), bins=3)
    assert actions.count == 9
    # The first dimension has -2, 0, 2 and the second 0, 0.5, 1.
    np.testing.assert_array_equal(actions.own(np.array([0, 1, 5, 8])), [[-2, 0], [-2, 0.5], [0, 1], [2, 1]])
    assert actions.own(np.array([0])).dtype == np.float32


@pytest.mark.parametrize(
    ("space", "bins", "message"),
    [
        (spaces.Box(-1, 1, (2,)), 0, "add --env.action-bins 5"),
        (spaces.Box(-np.inf, np.inf, (2,)), 5, "without limits"),
        (spaces.Box(-1, 1, (8,)), 5, r"above the limit of 4,096: lower --env.action-bins"),  # 5^8 = 390,625
        (spaces.MultiBinary(13), 0, "above the limit of 4,096"),  # 2^13 = 8,192
        (spaces.Tuple((spaces.Discrete(2),)), 0, "Tuple actions, which cannot be numbered"),
        (spaces.Discrete(2), 5, "--env.action-bins 5 applies only to Box"),
    ],
)
def test_other_actions_are_refused_in_one_line(space: spaces.Space[Any], bins: int, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        Actions("test", space, bins)
    assert "\n" not in str(error.value)


def test_the_largest_product_is_numbered() -> None:
    assert Actions("test", spaces.MultiBinary(12)).count == 4096


def test_the_environment_gets_its_own_actions() -> None:
    env = make_env(gdi.make_config("dqn", partial(Own, act=spaces.MultiDiscrete([2, 3]))).env, 2)
    env.reset(0)
    # Numbers 1 and 5 are (0, 1) and (1, 2), whose sums are 1 and 3.
    assert env.step(np.array([1, 5])).reward.tolist() == [1.0, 3.0]
    assert env.spec.reader is not None
    assert env.spec.reader.action(5).tolist() == [1, 2]


def test_an_agent_takes_raw_observations_and_returns_own_actions(tmp_path: Any) -> None:
    config = tiny_config("CartPole-v1", steps=300)
    given = gdi.make_config("gdi-i3", partial(Own, "mixed", spaces.MultiDiscrete([2, 3]))).env
    agent = gdi.load(gdi.train(change_env(config, given), tmp_path / "run").run_dir, env=given.given)
    agent.reset()
    action = agent.act(SPACES["mixed"].sample())
    assert action.shape == (2,)
    with pytest.raises(UserError, match="this is no observation of"):
        agent.act({"view": 3})
    with pytest.raises(UserError, match="was given as a Python object"):
        gdi.load(tmp_path / "run")
    with pytest.raises(UserError, match="is another environment than"):
        gdi.load(tmp_path / "run", env="CartPole-v1")


def change_env(config: gdi.Config, env: EnvConfig) -> gdi.Config:
    from dataclasses import replace

    return replace(config, env=replace(env, num_envs=4))


# ------------------------------------------------------------------------------------------------------- normalization


def test_the_normalizer_has_the_moments_of_all_trained_steps() -> None:
    generator = torch.Generator().manual_seed(0)
    values = 3.0 + 2.0 * torch.randn(2, 11, 4, 5, generator=generator)  # two batches [11, 4, 5]
    mask = torch.rand(2, 10, 4, generator=generator) < 0.7
    normalizer = Normalizer(5)
    for batch, trained in zip(values, mask, strict=True):
        nothing = torch.zeros(11, 4)
        normalizer.observe(seen_of(batch, nothing, nothing, nothing, torch.zeros(11, 4, 1)), trained)
    kept = torch.cat([batch[:10][trained] for batch, trained in zip(values, mask, strict=True)])
    torch.testing.assert_close(normalizer.mean, kept.mean(0))
    torch.testing.assert_close(normalizer.variance, kept.var(0, correction=0))
    assert normalizer.count == mask.sum()
    row = torch.full((1, 1, 5), 1e6)
    seen = normalizer(seen_of(row, torch.zeros(1, 1), torch.zeros(1, 1), torch.zeros(1, 1), torch.zeros(1, 1, 1)))
    assert (seen.obs == 10).all()  # cut at ten deviations


def test_the_moments_are_saved_with_the_network(tmp_path: Any) -> None:
    config = change(tiny_config("CartPole-v1", steps=600), normalize=True)
    agent = gdi.load(gdi.train(config, tmp_path / "run").run_dir)
    moments = {name: value for name, value in agent._params.items() if "normalizer" in name}
    assert set(moments) == {f"encoders.0.normalizer.{name}" for name in ("mean", "variance", "count")}
    assert moments["encoders.0.normalizer.count"] >= 600  # each transition is trained once or more
    assert (moments["encoders.0.normalizer.variance"] < 1).any()
    plain = gdi.load(gdi.train(change(config, normalize=False), tmp_path / "plain").run_dir)
    assert not [name for name in plain._params if "normalizer" in name]
