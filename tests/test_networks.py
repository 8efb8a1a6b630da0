"""The networks: shapes, recurrence that resets where it should, families that share or do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gdi.errors import UserError
from gdi.networks import AgentNetwork, Seen
from gdi.networks.dynamics import Dynamics
from gdi.networks.torsos import DENSE_CONVOLUTION_IMAGES, FirstConvolution, make_torso, resolve_torso
from gdi.presets import make_config
from helpers import make_network, randomize_advantages, seen_of, tiny_config, with_lstm

T, B, A = 6, 3, 4


def inputs(shape: tuple[int, ...] = (5,), dtype: torch.dtype = torch.float32, seed: int = 0) -> Seen:
    generator = torch.Generator().manual_seed(seed)
    obs = (
        torch.randint(0, 2, (T, B, *shape), generator=generator)
        if dtype != torch.float32
        else torch.randn(T, B, *shape, generator=generator)
    )
    return seen_of(
        obs.to(dtype),
        torch.zeros(T, B, dtype=torch.bool),
        torch.randint(0, A, (T, B), generator=generator),
        torch.randn(T, B, generator=generator),
        torch.rand(T, B, 3, generator=generator),
    )


def network_for(preset: str = "gdi-i3", *, lstm: bool = True, **network: object) -> AgentNetwork:
    config = tiny_config("Toy/Chain-v0", preset)
    config = with_lstm(config) if lstm else config
    config = replace(config, network=replace(config.network, **network))
    made = make_network(config, (5,), A, 0)
    randomize_advantages(made)
    return made


@pytest.mark.parametrize(
    ("torso", "shape", "dtype"),
    [
        ("mlp", (5,), torch.float32),
        ("minatar", (10, 10, 4), torch.bool),
        ("nature", (84, 84, 4), torch.uint8),
        ("nature", (84, 84, 1), torch.uint8),
        ("nature", (50, 61, 3), torch.uint8),
        ("impala-shallow", (84, 84, 4), torch.uint8),
        ("impala-deep", (84, 84, 4), torch.uint8),
        ("impala-deep", (10, 10, 6), torch.bool),
    ],
)
def test_torsos_give_features_and_gradients(torso: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    made = make_torso(torso, shape, 32)
    obs = torch.randint(0, 2, (7, *shape)).to(dtype)
    features = made(obs)
    assert features.shape == (7, 32)
    features.sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in made.parameters())


@pytest.mark.parametrize("images", [DENSE_CONVOLUTION_IMAGES, DENSE_CONVOLUTION_IMAGES - 1])
@pytest.mark.parametrize(("torso", "shape"), [("minatar", (10, 10, 4)), ("impala-shallow", (84, 84, 2))])
def test_a_dense_layer_as_a_convolution_computes_the_same(torso: str, shape: tuple[int, ...], images: int) -> None:
    product = make_torso(torso, shape, 32)
    convolution = make_torso(torso, shape, 32, dense_as_convolution=True)
    convolution.load_state_dict(product.state_dict())
    obs = torch.randint(0, 2, (images, *shape)).bool()
    features = [made(obs) for made in (product, convolution)]
    torch.testing.assert_close(features[1], features[0])
    gradients = [
        torch.autograd.grad(x.square().sum(), list(made.parameters()))
        for x, made in zip(features, (product, convolution), strict=True)
    ]
    for first, second in zip(*gradients, strict=True):
        torch.testing.assert_close(second, first, rtol=1e-4, atol=1e-4 * float(first.abs().max()))


def test_bytes_are_scaled_and_booleans_are_not() -> None:
    made = make_torso("nature", (84, 84, 1), 16)
    white = torch.full((1, 84, 84, 1), 255, dtype=torch.uint8)
    ones = torch.ones((1, 84, 84, 1), dtype=torch.bool)
    torch.testing.assert_close(made(white), made(ones))


def test_channels_are_the_last_axis_of_observations() -> None:
    """A channel-first reading of a 10x10x4 image would see 10 channels, and fail."""
    made = make_torso("minatar", (10, 10, 4), 16)
    first = next(made.parameters())
    assert first.shape == (16, 4, 3, 3)


@pytest.mark.parametrize("kind", ["nature", "impala-shallow"])
def test_what_differs_between_frames_reaches_the_features(kind: str) -> None:
    """Frames of one bright gray with a ball somewhere, as in Pong. PyTorch's weights leave less than a hundredth."""
    torch.manual_seed(0)
    frames = torch.full((64, 84, 84, 4), 87, dtype=torch.uint8)
    for frame, (row, column) in zip(frames, torch.randint(80, (64, 2)).tolist(), strict=True):
        frame[row : row + 4, column : column + 4] = 236

    def differences(x: torch.Tensor) -> float:
        """Between a frame's and the mean frame's, as vectors."""
        flat = x.flatten(1)
        return float((flat - flat.mean(0)).norm(dim=1).mean())

    with torch.no_grad():
        features = make_torso(kind, (84, 84, 4), 256)(frames)
    assert differences(features) > 0.05 * differences(frames / 255.0)


@pytest.mark.parametrize("empty", [0, 87, 255])
def test_an_empty_field_of_any_brightness_gives_the_bias_alone(empty: int) -> None:
    """Else every update of a filter moves its output on the whole field: in Pong until it was below 0 everywhere."""
    torch.manual_seed(0)
    layer = FirstConvolution(4, 16)
    frames = torch.full((2, 84, 84, 4), empty, dtype=torch.uint8)
    frames[:, :20] = 128  # a quarter of the picture is something else
    out = layer(frames)
    assert layer.bias is not None
    torch.testing.assert_close(out[:, :, 5:], layer.bias[:, None, None].expand_as(out[:, :, 5:]), rtol=0.0, atol=1e-4)
    assert (out[:, :, :4] - layer.bias[:, None, None]).abs().max() > 0.01


def test_auto_torso() -> None:
    assert resolve_torso("auto", (8,)) == "mlp"
    assert resolve_torso("auto", (2, 9, 3)) == "mlp"  # nothing for a 3x3 convolution to slide over
    assert resolve_torso("auto", (10, 10, 4)) == "minatar"
    assert resolve_torso("auto", (84, 84, 4)) == "nature"
    with pytest.raises(UserError, match="at least 36 pixels"):
        resolve_torso("nature", (10, 10, 4))


@pytest.mark.parametrize("preset", ["gdi-i3", "gdi-h3"])
@pytest.mark.parametrize("lstm", [True, False])
def test_output_shapes(preset: str, lstm: bool) -> None:
    families = 2 if preset == "gdi-h3" else 1
    made = network_for(preset, lstm=lstm)
    output = made(inputs(), made.initial_state(B))
    assert output.head.advantage.shape == (T, B, families, A)
    assert output.head.value.shape == (T, B, families)
    assert output.state.shape == (B, families, 16 if lstm else 0)


def test_unrolling_in_one_call_equals_step_by_step() -> None:
    made = network_for()
    x = inputs()
    x.episode_start[2, 1] = True
    x.episode_start[4] = True
    whole = made(x, made.initial_state(B))
    state = made.initial_state(B)
    for t in range(T):
        step = made(Seen(*(part[t : t + 1] for part in x)), state)
        state = step.state
        torch.testing.assert_close(step.head.advantage[0], whole.head.advantage[t])
        torch.testing.assert_close(step.head.value[0], whole.head.value[t])
    torch.testing.assert_close(state, whole.state)


def test_state_resets_exactly_where_an_episode_starts() -> None:
    made = network_for()
    x, other = inputs(), inputs(seed=1)
    x.episode_start[3, 1] = True
    # Everything before step 3 is changed: sequence 1 forgets it at step 3, the others do not.
    changed = Seen(*(torch.cat([b[:3], a[3:]]) for a, b in zip(x, other, strict=True)))
    out, out_changed = made(x, made.initial_state(B)).head.value, made(changed, made.initial_state(B)).head.value
    torch.testing.assert_close(out[3:, 1], out_changed[3:, 1], rtol=0, atol=0)
    assert (out[3:, 0] - out_changed[3:, 0]).abs().max() > 1e-4
    assert (out[:3, 1] - out_changed[:3, 1]).abs().max() > 1e-4


def test_previous_action_and_reward_matter_inside_an_episode_and_not_at_its_start() -> None:
    made = network_for()
    x = inputs()
    x.episode_start[0] = True
    changed = x._replace(previous_action=(x.previous_action + 1) % A, previous_reward=x.previous_reward + 1)
    out, out_changed = made(x, made.initial_state(B)).head.value, made(changed, made.initial_state(B)).head.value
    torch.testing.assert_close(out[0], out_changed[0], rtol=0, atol=0)
    assert (out[1] - out_changed[1]).abs().max() > 1e-4


def test_families_of_h3_are_disjoint() -> None:
    made = network_for("gdi-h3")
    output = made(inputs(), made.initial_state(B))
    output.head.advantage[..., 0, :].sum().backward()
    touched = {name for name, p in made.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}
    assert touched
    assert all(name.startswith(("encoders.0", "heads.0")) for name in touched)


def test_shared_torso_has_one_encoder_and_two_heads() -> None:
    shared, disjoint = network_for("gdi-h3", shared_torso=True), network_for("gdi-h3")
    assert len(shared.encoders) == 1
    assert len(shared.heads) == 2
    output = shared(inputs(), shared.initial_state(B))
    assert output.head.advantage.shape == (T, B, 2, A)
    assert not torch.equal(output.head.advantage[..., 0, :], output.head.advantage[..., 1, :])
    assert sum(p.numel() for p in shared.parameters()) < 0.6 * sum(p.numel() for p in disjoint.parameters())


def test_first_policy_is_uniform_and_the_seed_decides_the_rest() -> None:
    config = tiny_config("Toy/Chain-v0")
    one, same, other = (make_network(config, (5,), A, seed) for seed in (1, 1, 2))
    assert (one(inputs(), one.initial_state(B)).head.advantage == 0).all()
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), same.parameters(), strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def test_making_a_network_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    make_network(tiny_config("Toy/Chain-v0"), (5,), A, 1)
    assert torch.equal(torch.rand(3), expected)


def test_inverse_dynamics_can_be_learned_and_forward_target_gets_no_gradient() -> None:
    torch.manual_seed(0)
    task = Dynamics(6, A)
    features = torch.randn(T + 1, B, 6, requires_grad=True)
    action = torch.randint(0, A, (T, B))
    assert task.forward_loss(features, action).shape == (T, B)
    task.forward_loss(features, action).sum().backward()
    assert features.grad is not None
    # φ_T is only ever a target, so nothing flows into it; φ_0 is only ever an input.
    assert torch.equal(features.grad[-1], torch.zeros(B, 6))
    assert features.grad[0].abs().sum() > 0
    # When φ_{t+1} − φ_t names the action, the inverse task must find it.
    phi = torch.zeros(T + 1, B, 6)
    for t in range(T):
        phi[t + 1] = phi[t]
        phi[t + 1, torch.arange(B), action[t]] += 1.0
    optimizer = torch.optim.Adam(task.parameters(), 0.05)
    for _ in range(300):
        optimizer.zero_grad()
        loss = task.inverse_loss(phi, action).mean()
        loss.backward()
        optimizer.step()
    assert float(loss.detach()) < 0.1 < np.log(A)


def test_paper_scale_parameter_count() -> None:
    """GDI-I3 on 84x84x4 with 18 actions, layer by layer as IMPALA-deep and the tables say."""
    config = make_config("gdi-i3", scale="paper")
    network = make_network(config, (84, 84, 4), 18, 0)

    def conv(inputs: int, outputs: int) -> int:
        return 9 * inputs * outputs + outputs

    def section(inputs: int, outputs: int) -> int:
        return conv(inputs, outputs) + 4 * conv(outputs, outputs)

    convolutions = section(4, 16) + section(16, 32) + section(32, 32)
    dense = 11 * 11 * 32 * 256 + 256  # 84 -> 42 -> 21 -> 11
    lstm = 4 * 256 * (256 + 18 + 1 + 256) + 2 * 4 * 256
    heads = (256 * 18 + 18) + (256 + 1)
    dynamics = ((256 + 18) * 256 + 256) + (2 * 256 * 18 + 18)
    assert sum(p.numel() for p in network.parameters()) == convolutions + dense + lstm + heads + dynamics
    h3 = make_network(make_config("gdi-h3", scale="paper"), (84, 84, 4), 18, 0)
    assert sum(p.numel() for p in h3.parameters()) == 2 * sum(p.numel() for p in network.parameters())


@pytest.mark.parametrize("shape", [(84, 84, 4), (84, 84, 1), (20, 32, 3)])
@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("frames_first", [True, False])
def test_the_first_convolution_of_bytes_is_the_plain_one(
    shape: tuple[int, int, int], count: int, frames_first: bool
) -> None:
    """Blocks of pixels as channels, scale in the weights: the sums of conv2d(x / 255 - median), and their gradients."""
    torch.manual_seed(0)
    layer = FirstConvolution(shape[2], 16).to(memory_format=torch.channels_last)
    obs = torch.randint(0, 256, (count, *shape), dtype=torch.uint8)
    if frames_first:  # the memory order of stacked frames
        obs = obs.permute(0, 3, 1, 2).contiguous().permute(0, 2, 3, 1)
    images = obs.permute(0, 3, 1, 2).float() / 255
    empty = images[:, :, ::6, ::6].flatten(2).median(2).values
    plain = torch.nn.functional.conv2d(images - empty[:, :, None, None], layer.weight, layer.bias, 4)
    torch.testing.assert_close(layer(obs.float() / 255), plain, rtol=1e-4, atol=1e-5)
    out = layer(obs)
    torch.testing.assert_close(out, plain, rtol=1e-4, atol=1e-5)
    direction = torch.randn_like(out)
    for ours, theirs in zip(
        torch.autograd.grad(out, list(layer.parameters()), direction),
        torch.autograd.grad(plain, list(layer.parameters()), direction),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)


def test_paper_scale_tensor_shapes() -> None:
    """The tensors of an update at the paper's scale: 40 + 80 steps and a bootstrap, 18 actions, two families."""
    config = make_config("gdi-h3", "ALE/Breakout-v5", scale="paper")
    data = config.data
    assert (config.env.num_envs, data.batch_size_sequences) == (160, 64)
    assert (data.burn_in_steps, data.sequence_steps) == (40, 80)
    network = make_network(config, (84, 84, 4), 18, 0)
    state = network.initial_state(2)
    assert state.shape == (2, 2, 2 * 256)  # [B, encoders, hidden and cell]
    out = network(
        seen_of(
            torch.zeros(3, 2, 84, 84, 4, dtype=torch.uint8),
            torch.zeros(3, 2, dtype=torch.bool),
            torch.zeros(3, 2, dtype=torch.int64),
            torch.zeros(3, 2),
            torch.zeros(3, 2, 3),
        ),
        state,
    )
    assert out.head.advantage.shape == (3, 2, 2, 18)  # [T, B, families, actions]
    assert out.head.value.shape == (3, 2, 2)
    assert [phi.shape for phi in out.features] == [(3, 2, 256)] * 2
    # 15 convolutions in each family: 84 -> 42 -> 21 -> 11 by max-pooling, 16, 32 and 32 channels
    layers = [m for m in network.encoders[0].modules() if isinstance(m, torch.nn.Conv2d)]
    assert [m.out_channels for m in layers] == [16] * 5 + [32] * 10
    assert network.encoders[0].torso.dense.in_features == 11 * 11 * 32


@pytest.mark.parametrize(("activation", "lowest"), [("tanh", -1.0), ("relu", 0.0)])
def test_the_activation_of_vectors_is_the_configured_one(activation: str, lowest: float) -> None:
    """ReLU has no negative features, and tanh has some."""
    torch.manual_seed(0)
    features = make_torso("mlp", (4,), 64, activation)(torch.randn(50, 4)).detach()
    assert features.min() >= lowest
    assert bool(features.min() < 0) is (activation == "tanh")


@pytest.mark.parametrize(("preset", "orthogonal"), [("ppo", True), ("impala", False)])
def test_ppo_starts_with_orthogonal_layers(preset: str, orthogonal: bool) -> None:
    """Rows of an orthogonal layer of gain √2 have norm √2 and are perpendicular."""
    network = make_network(make_config(preset, "CartPole-v1"), (4,), 2, 0)
    weight = next(p for name, p in network.named_parameters() if name == "encoders.0.torso.layers.2.weight")
    product = weight @ weight.T
    assert torch.allclose(product, 2 * torch.eye(len(product)), atol=1e-4) is orthogonal
