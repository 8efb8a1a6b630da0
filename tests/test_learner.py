"""The learner: gradients go where they should and nowhere else; guards; schedules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gdi.algorithms import Loss, Transitions, make_algorithm
from gdi.algorithms.gdi import GDI, Head, centered_q
from gdi.config import AdamWConfig, Config, GDIConfig
from gdi.envs.base import EnvSpec
from gdi.envs.toy import ToyEnv
from gdi.errors import DivergenceError
from gdi.learner import Learner
from gdi.learner.adamw import AdamW
from gdi.learner.learner import HEALTH_EVERY_UPDATES
from gdi.learner.optimizer import Optimizer, learning_rate_at, weight_decay_at
from gdi.networks import AgentNetwork, AgentOutput, Seen
from gdi.presets import make_config
from gdi.types import Window
from helpers import (
    change,
    make_actor,
    make_network,
    random_batch,
    randomize_advantages,
    seen_of,
    tiny_config,
    transitions,
    with_lstm,
)

SPEC = EnvSpec((3,), np.dtype(np.float32), 4)
CPU = torch.device("cpu")
ONLY = {"v_loss_scale": 0.0, "q_loss_scale": 0.0, "policy_loss_scale": 0.0}


def make_learner(network: AgentNetwork, config: Config, chunk_sequences: int = 0) -> Learner:
    return Learner(network, make_algorithm(config), config, CPU, chunk_sequences)


def learner_for(preset: str = "gdi-i3", seed: int = 0, **learner: float) -> Learner:
    config = tiny_config("Toy/Chain-v0", preset, **learner)
    network = make_network(config, SPEC.observation_shape, SPEC.num_actions, seed)
    randomize_advantages(network)
    return make_learner(network, config)


def gradients(preset: str = "gdi-i3", **learner: float) -> dict[str, float]:
    """Absolute gradient per parameter after one loss on noise, without an optimizer step."""
    part = learner_for(preset, **learner)
    batch = random_batch(part._config, SPEC, 6)
    part._optimizer.step = lambda update, progress: 0.0  # type: ignore[method-assign]
    part._optimizer.clip = lambda: 1.0  # type: ignore[method-assign]
    part.update(batch)
    return {name: 0.0 if p.grad is None else float(p.grad.abs().sum()) for name, p in part.network.named_parameters()}


def test_q_loss_trains_the_advantage_and_not_the_value() -> None:
    grads = gradients(**{**ONLY, "q_loss_scale": 10.0})
    assert grads["heads.0.advantage.weight"] > 0
    assert grads["heads.0.value.weight"] == 0.0
    assert grads["heads.0.value.bias"] == 0.0


def test_q_loss_without_stop_gradient_trains_both() -> None:
    grads = gradients(**{**ONLY, "q_loss_scale": 10.0, "q_stop_gradient": False})
    assert grads["heads.0.advantage.weight"] > 0
    assert grads["heads.0.value.weight"] > 0


def test_v_loss_trains_the_value_only() -> None:
    grads = gradients(**{**ONLY, "v_loss_scale": 1.0})
    assert grads["heads.0.value.weight"] > 0
    assert grads["heads.0.advantage.weight"] == 0.0


def test_policy_loss_trains_the_advantage_only() -> None:
    grads = gradients(**{**ONLY, "policy_loss_scale": 1.0})
    assert grads["heads.0.advantage.weight"] > 0
    assert grads["heads.0.value.weight"] == 0.0


def losses_with(output: AgentOutput, data: Transitions, config: GDIConfig, families: int = 1) -> torch.Tensor:
    preset = "gdi-h3" if families == 2 else "gdi-i3"
    network = make_network(tiny_config("Toy/Chain-v0", preset), SPEC.observation_shape, SPEC.num_actions, 0)
    shapes = replace(config, reward_shapes=("log", "root")[:families], reward_scales=(1.0, 1.0)[:families])
    return GDI(shapes).loss(network, output, data).total


def noise(families: int, steps: int = 7, batch: int = 5) -> tuple[torch.Tensor, torch.Tensor, Transitions]:
    """advantage, value (both leaves), and data whose every step is valid and goes on."""
    generator = torch.Generator().manual_seed(0)
    advantage = torch.randn(steps + 1, batch, families, 4, generator=generator, requires_grad=True)
    value = torch.randn(steps + 1, batch, families, generator=generator, requires_grad=True)
    index = torch.rand(steps, batch, 3, generator=generator)
    data = transitions(
        action=torch.randint(4, (steps, batch), generator=generator),
        reward=torch.randn(steps, batch, generator=generator),
        terminated=torch.zeros(steps, batch, dtype=torch.bool),
        mask=torch.ones(steps, batch, dtype=torch.bool),
        behavior_prob=torch.rand(steps, batch, generator=generator) * 0.8 + 0.1,
        index=index,
    )
    return advantage, value, data


def as_output(advantage: torch.Tensor, value: torch.Tensor) -> AgentOutput:
    return AgentOutput(Head(advantage, value), [], torch.zeros(0))


def test_change_of_the_value_is_that_from_step_to_step_within_episodes() -> None:
    advantage, value, data = noise(2)
    draw = torch.Generator().manual_seed(1)
    valid, terminated = (torch.rand(data.mask.shape, generator=draw) < share for share in (0.7, 0.2))
    network = make_network(tiny_config("Toy/Chain-v0", "gdi-h3"), SPEC.observation_shape, SPEC.num_actions, 0)
    config = GDIConfig(reward_shapes=("log", "root"), reward_scales=(1.0, 1.0))
    data = data._replace(mask=valid, terminated=terminated)
    metrics = GDI(config).loss(network, as_output(advantage, value), data).metrics
    steps = [(t, b) for t, b in np.argwhere(valid.numpy()) if not terminated[t, b]]
    v = value.detach()
    changes = [float(abs(v[t + 1, b, family] - v[t, b, family])) for t, b in steps for family in (0, 1)]
    assert float(metrics["value/change"]) == pytest.approx(sum(changes) / (2 * int(valid.sum())), rel=1e-4)


def test_targets_get_no_gradient() -> None:
    """The bootstrap value enters every target and no prediction: its gradient is exactly zero."""
    advantage, value, data = noise(1)
    losses_with(as_output(advantage, value), data, replace(GDIConfig(), q_stop_gradient=False)).backward()
    assert value.grad is not None
    assert advantage.grad is not None
    assert value.grad[:-1].abs().min() > 0
    assert torch.equal(value.grad[-1], torch.zeros_like(value.grad[-1]))
    assert torch.equal(advantage.grad[-1], torch.zeros_like(advantage.grad[-1]))


def test_invalid_steps_get_no_gradient_and_change_nothing() -> None:
    advantage, value, data = noise(1)
    valid = data.mask.clone()
    valid[3, :] = False
    data = data._replace(mask=valid)
    losses_with(as_output(advantage, value), data, GDIConfig()).backward()
    assert advantage.grad is not None
    assert torch.equal(advantage.grad[3], torch.zeros_like(advantage.grad[3]))
    assert value.grad is not None
    assert torch.equal(value.grad[3], torch.zeros_like(value.grad[3]))

    def total(reward_there: float, action_there: int) -> float:
        reward, action = data.reward.clone(), data.action.clone()
        reward[3], action[3] = reward_there, action_there
        changed = data._replace(reward=reward, action=action)
        return losses_with(as_output(advantage, value), changed, GDIConfig()).item()

    assert total(0.0, 0) == total(1000.0, 3)


def test_each_family_of_h3_learns_from_its_own_values_only() -> None:
    """Changing family 2's values leaves family 1's gradients bit-equal: own reward, own targets, own advantage."""

    def gradient(shift: float) -> torch.Tensor:
        advantage, value, data = noise(2)
        with torch.no_grad():
            value[..., 1] += shift
        losses_with(as_output(advantage, value), data, GDIConfig(), families=2).backward()
        assert advantage.grad is not None
        assert value.grad is not None
        return torch.cat([advantage.grad[..., 0, :].flatten(), value.grad[..., 0].flatten()])

    assert torch.equal(gradient(0.0), gradient(5.0))


def test_policy_gradient_by_hand() -> None:
    """One step, one sequence, two actions, on-policy: −β·(r + γV' − V)·∂log π/∂A, π = Softmax(A·u) at ε = 1."""
    config = replace(GDIConfig(), **{**ONLY, "policy_loss_scale": 3.0}, discount=0.9, reward_shapes=("none",))
    advantage = torch.tensor([[[[0.2, -0.1]]], [[[0.0, 0.0]]]], requires_grad=True)
    value = torch.tensor([[[0.5]], [[2.0]]])
    u, reward = 1.5, 1.0
    pi = torch.softmax(advantage.detach()[0, 0, 0] * u, 0)
    data = transitions(
        action=torch.tensor([[0]]),
        reward=torch.tensor([[reward]]),
        terminated=torch.tensor([[False]]),
        mask=torch.tensor([[True]]),
        behavior_prob=pi[0].reshape(1, 1),
        index=torch.tensor([[[u, 0.0, 1.0]]]),
    )
    network = make_network(tiny_config("Toy/Chain-v0"), (3,), 2, 0)
    GDI(config).loss(network, as_output(advantage, value), data).total.backward()
    gain = reward + 0.9 * 2.0 - 0.5  # ratio 1 is below the clip 1.05
    expected = -3.0 * gain * u * (torch.tensor([1.0, 0.0]) - pi)
    assert advantage.grad is not None
    torch.testing.assert_close(advantage.grad[0, 0, 0], expected)


def test_centered_q_has_mean_v_under_pi() -> None:
    advantage, value, _ = noise(2)
    log_pi = torch.log_softmax(torch.randn(8, 5, 4), -1)
    q = centered_q(advantage, value, log_pi, stop_gradient=True)
    torch.testing.assert_close((log_pi.exp().unsqueeze(-2) * q).sum(-1), value)


def test_terminal_stops_the_bootstrap() -> None:
    """The last step's V target is r at a terminal, and r + γV(s') without one (ρ = 1)."""
    config = replace(GDIConfig(), **{**ONLY, "v_loss_scale": 1.0}, discount=0.9, reward_shapes=("none",))
    for terminal, target in ((True, 1.0), (False, 1.0 + 0.9 * 7.0)):
        value = torch.tensor([[[2.0]], [[7.0]]], requires_grad=True)
        advantage = torch.zeros(2, 1, 1, 2)
        data = transitions(
            action=torch.tensor([[0]]),
            reward=torch.tensor([[1.0]]),
            terminated=torch.tensor([[terminal]]),
            mask=torch.tensor([[True]]),
            behavior_prob=torch.tensor([[0.5]]),
            index=torch.tensor([[[1.0, 0.0, 1.0]]]),
        )
        network = make_network(tiny_config("Toy/Chain-v0"), (3,), 2, 0)
        GDI(config).loss(network, as_output(advantage, value), data).total.backward()
        assert value.grad is not None
        assert float(value.grad[0, 0, 0]) == pytest.approx(2.0 - target)


def test_burn_in_runs_without_gradient_and_from_the_stored_state() -> None:
    config = with_lstm(tiny_config("Toy/Chain-v0", burn_in_steps=4))
    part = make_learner(make_network(config, SPEC.observation_shape, SPEC.num_actions, 0), config)
    seen: list[tuple[bool, int, float]] = []

    def watch(module, args, output):  # type: ignore[no-untyped-def]
        inputs, state = args
        seen.append((torch.is_grad_enabled(), len(inputs.obs), float(state.sum())))

    part.network.register_forward_hook(watch)
    batch = random_batch(config, SPEC, 3)
    batch.state[:] = 0.25
    part.update(batch)
    (burn_grad, burn_length, burn_state), (train_grad, train_length, train_state) = seen
    assert (burn_grad, burn_length) == (False, 4)
    assert (train_grad, train_length) == (True, config.data.sequence_steps + 1)
    assert burn_state == pytest.approx(3 * 16 * 0.25)  # 3 sequences, hidden and cell of 8 units
    assert train_state != burn_state


def test_burn_in_observations_reach_the_state_but_get_no_gradient() -> None:
    config = with_lstm(tiny_config("Toy/Chain-v0", burn_in_steps=4))
    network = make_network(config, SPEC.observation_shape, SPEC.num_actions, 0)
    randomize_advantages(network)
    base = random_batch(config, SPEC, 3)
    base.episode_start[:] = False

    def loss(shift: float) -> float:
        part = make_learner(make_network(config, SPEC.observation_shape, SPEC.num_actions, 0), config)
        part.network.load_state_dict(network.state_dict())
        obs = base.obs.copy()
        obs[:4] += shift
        return part.update(replace(base, obs=obs))["loss/total"]

    assert loss(0.0) != loss(1.0)
    assert loss(0.0) == loss(0.0)


@pytest.mark.parametrize("where", ["reward", "obs"])
def test_a_non_finite_update_is_skipped_counted_and_finally_fatal(where: str) -> None:
    part = learner_for(max_nonfinite_updates=3)
    good = random_batch(part._config, SPEC, 6)
    part.update(good)
    before = part.parameters()
    bad = replace(good, **{where: np.full_like(getattr(good, where), np.nan)})
    assert part.update(bad) == {"learner/skipped": 1.0}
    assert part.update(bad) == {"learner/skipped": 1.0}
    for name, value in part.parameters().items():
        assert torch.equal(value, before[name]), name
    assert part.updates == 1
    assert part.update(good)["learner/skipped"] == 0.0  # a good one ends the row
    part.update(bad)
    part.update(bad)
    with pytest.raises(DivergenceError, match="3 updates in a row"):
        part.update(bad)
    assert part.skipped_updates == 5


def test_learning_rate_warms_up_and_anneals_to_zero() -> None:
    def rate(update: int, progress: float) -> float:
        return learning_rate_at(update, progress, warmup_updates=10, num_updates=50, peak=2.0)

    assert rate(0, 0.0) == pytest.approx(2.0 * 1 / 10)
    assert rate(4, 0.08) == pytest.approx(2.0 * 5 / 10)
    assert rate(10, 0.2) == pytest.approx(2.0)
    assert rate(30, 0.6) == pytest.approx(2.0 * (1 - 0.6) / (1 - 0.2))
    assert rate(50, 1.0) == 0.0


def test_a_short_run_warms_up_for_a_quarter_of_it() -> None:
    """2M steps at the paper's scale are 781 updates, where its warm-up has 4,000: the rate must still come down."""
    config = make_config("gdi-i3", "pong", scale="paper", steps=2_000_000)
    assert config.planned_updates == 781
    optimizer = Optimizer(
        make_network(tiny_config("Toy/Chain-v0"), SPEC.observation_shape, SPEC.num_actions, 0), config
    )
    rates = [optimizer.step(update, update / 781) for update in (0, 194, 500, 780)]
    peak, warmup = 5e-4, 781 // 4
    assert rates[:2] == pytest.approx([peak / warmup, peak])
    assert rates[2:] == pytest.approx([peak * (1 - done / 781) / (1 - warmup / 781) for done in (500, 780)])


def test_an_update_has_the_rate_of_the_progress_before_it() -> None:
    part = learner_for(learning_rate=0.1, warmup_updates=0)
    batch = random_batch(part._config, SPEC, 6)
    rates, before = [], []
    for _ in range(3):
        before.append(1.0 - part.progress)
        rates.append(part.update(batch)["optimizer/learning_rate"])
    assert rates == pytest.approx([0.1 * left for left in before])
    assert rates[0] == 0.1 > rates[1] > rates[2]


def test_weight_decay_anneals_to_zero() -> None:
    config = AdamWConfig(weight_decay=0.01)
    assert weight_decay_at(0.0, config) == 0.01
    assert weight_decay_at(0.75, config) == pytest.approx(0.0025)
    assert weight_decay_at(1.0, config) == 0.0


def test_weight_decay_shrinks_weights_and_spares_biases() -> None:
    config = tiny_config("Toy/Chain-v0", weight_decay=0.5, learning_rate=0.1, warmup_updates=0)
    network = make_network(config, SPEC.observation_shape, SPEC.num_actions, 0)
    optimizer = Optimizer(network, config)
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    for p in network.parameters():
        p.grad = torch.zeros_like(p)
    rate = optimizer.step(update=0, progress=0.0)
    assert rate == pytest.approx(0.1)
    for name, p in network.named_parameters():
        factor = 1.0 - 0.1 * 0.5 if p.ndim > 1 else 1.0
        torch.testing.assert_close(p.detach(), before[name] * factor, msg=name)


def test_adam_uses_the_betas_and_epsilon_of_the_config() -> None:
    """Two steps by hand on every parameter: m, v with bias correction, and no decay."""
    config = tiny_config(
        "Toy/Chain-v0", learning_rate=0.1, warmup_updates=0, adam_beta_1=0.5, adam_beta_2=0.6, adam_epsilon=0.3
    )
    network = make_network(config, SPEC.observation_shape, SPEC.num_actions, 0)
    optimizer = Optimizer(network, config)
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    m = v = moved = 0.0
    for t, gradient in ((1, 2.0), (2, -1.0)):
        for p in network.parameters():
            p.grad = torch.full_like(p, gradient)
        optimizer.step(update=t, progress=0.0)
        m, v = 0.5 * m + 0.5 * gradient, 0.6 * v + 0.4 * gradient**2
        moved += 0.1 * (m / (1 - 0.5**t)) / ((v / (1 - 0.6**t)) ** 0.5 + 0.3)
    for name, p in network.named_parameters():
        torch.testing.assert_close(p.detach(), before[name] - moved, msg=name)


def test_adamw_is_torchs_bit_by_bit() -> None:
    """Two groups, one of which decays; a parameter without a gradient stays, and has no state."""
    config = AdamWConfig(learning_rate=0.1, adam_beta_1=0.8, adam_beta_2=0.95, adam_epsilon=1e-3)
    generator = torch.Generator().manual_seed(0)
    ours, theirs = (
        [torch.randn(shape, generator=torch.Generator().manual_seed(1), requires_grad=True) for shape in ((3, 5), (7,))]
        for _ in range(2)
    )
    idle = torch.ones(2, requires_grad=True)

    def groups(parameters: list[torch.Tensor]) -> list[dict[str, object]]:
        weights, biases = parameters
        return [{"params": [weights, idle], "weight_decay": 0.25}, {"params": [biases], "weight_decay": 0.0}]

    rule = AdamW(groups(ours), config)
    reference = torch.optim.AdamW(groups(theirs), 0.1, betas=(0.8, 0.95), eps=1e-3, fused=True)
    for rate in (0.1, 0.03, 0.01):
        for p, q in zip(ours, theirs, strict=True):
            p.grad = torch.randn(p.shape, generator=generator)
            q.grad = p.grad.clone()
        for ours_group, theirs_group in zip(rule.groups, reference.param_groups, strict=True):
            ours_group["rate"] = theirs_group["lr"] = rate
        rule.step()
        reference.step()
    assert all(torch.equal(p, q) for p, q in zip(ours, theirs, strict=True))
    for p, q in zip(ours, theirs, strict=True):
        assert rule.state[p].keys() == reference.state[q].keys()
        assert all(torch.equal(rule.state[p][name], reference.state[q][name]) for name in rule.state[p])
    assert idle.tolist() == [1.0, 1.0]
    assert idle not in rule.state


def test_gradients_are_clipped_to_the_global_norm() -> None:
    config = tiny_config("Toy/Chain-v0", clip_norm=2.0)
    network = make_network(config, SPEC.observation_shape, SPEC.num_actions, 0)
    optimizer = Optimizer(network, config)
    for p in network.parameters():
        p.grad = torch.ones_like(p)
    count = sum(p.numel() for p in network.parameters())
    assert float(optimizer.clip()) == pytest.approx(count**0.5)
    after = sum(float(p.grad.pow(2).sum()) for p in network.parameters() if p.grad is not None)
    assert after**0.5 == pytest.approx(2.0, rel=1e-4)


def test_planned_updates_of_the_paper() -> None:
    assert make_config("gdi-i3", scale="paper").planned_updates == 19_531  # 5e7 · 2 / (64 · 80)


class ConstantReward:
    """Reward 1 for ever, cut after four steps: the value is 1/(1 − γ), if the cut is no end."""

    features, num_actions = 1, 2

    def observe(self, toy: ToyEnv) -> np.ndarray:
        return np.ones((toy.num_envs, 1))

    def play(self, toy: ToyEnv, action: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        never = np.zeros(toy.num_envs, bool)
        return np.ones(toy.num_envs), never, toy.clock + 1 >= 4


def learned_value(*, truncation_ends_the_world: bool) -> float:
    config = tiny_config("Toy/Chain-v0", discount=0.8, learning_rate=0.02, warmup_updates=0, steps=400 * 8 * 5)
    config = change(config, reward_shapes=("none",), reward_scales=(1.0,))
    actor, network = make_actor(ToyEnv(ConstantReward(), 8), config)
    part = make_learner(network, config)
    window: Window | None = None
    for _ in range(200):
        window, _, _ = actor.collect(lambda envs: [(1.0, 1.0, 0.5)] * len(envs), 10**9)
        if truncation_ends_the_world:
            window = replace(window, terminated=window.truncated)
        part.update(window)
    assert window is not None
    inputs = seen_of(
        torch.ones(1, 1, 1),
        torch.ones(1, 1, dtype=torch.bool),
        torch.zeros(1, 1, dtype=torch.long),
        torch.zeros(1, 1),
        torch.zeros(1, 1, 3),
    )
    with torch.no_grad():
        return float(part.network(inputs, part.network.initial_state(1)).head.value[0, 0, 0])


def test_truncation_bootstraps_and_treating_it_as_the_end_is_wrong() -> None:
    """γ = 0.8: 1/(1 − γ) = 5. Four steps alone are worth at most 1 + 0.8 + 0.64 + 0.512 = 2.952."""
    assert learned_value(truncation_ends_the_world=False) == pytest.approx(5.0, abs=0.15)
    assert learned_value(truncation_ends_the_world=True) < 3.0


@pytest.mark.parametrize("preset", ["gdi-i3", "gdi-h3"])
@pytest.mark.parametrize(("chunk", "workers"), [(1, 1), (2, 1), (4, 1), (3, 2), (2, 3)])
def test_a_batch_in_chunks_gives_the_gradient_and_metrics_of_the_whole(preset: str, chunk: int, workers: int) -> None:
    """Chunks have different numbers of valid steps, one of them none: a plain mean of their means would differ."""
    whole = learner_for(preset)
    batch = random_batch(whole._config, SPEC, 6)
    batch.valid[:, :3] &= np.arange(5)[:, None] < 2
    batch.valid[:, 4] = False
    config = change(whole._config, workers=workers)
    network = make_network(config, SPEC.observation_shape, SPEC.num_actions, 0)
    randomize_advantages(network)
    cut = make_learner(network, config, chunk)
    expected, metrics = whole.update(batch), cut.update(batch)
    assert metrics == pytest.approx(expected, rel=1e-4, abs=1e-6)
    for (name, a), b in zip(whole.network.named_parameters(), cut.network.parameters(), strict=True):
        assert a.grad is not None, name
        torch.testing.assert_close(b.grad, a.grad, rtol=1e-4, atol=1e-6)


def test_workers_repeat_bit_by_bit() -> None:
    """Gradients are summed in the chunks' order, whoever finishes first."""
    found = []
    for _ in range(2):
        config = tiny_config("Toy/Chain-v0", workers=2)
        part = make_learner(make_network(config, SPEC.observation_shape, SPEC.num_actions, 0), config, 1)
        for seed in range(20):
            part.update(random_batch(config, SPEC, 6, seed))
        found.append(part.parameters())
    for name, value in found[0].items():
        assert torch.equal(value, found[1][name]), name


class Listening(GDI):
    """GDI that remembers what it was given."""

    def __init__(self, config: GDIConfig) -> None:
        super().__init__(config)
        self.given: list[tuple[AgentOutput, Transitions, bool]] = []

    def loss(self, network: AgentNetwork, online: AgentOutput, data: Transitions, *, health: bool = True) -> Loss:
        self.given.append((online, data, health))
        return super().loss(network, online, data, health=health)


def test_the_algorithm_gets_the_trained_steps_with_one_row_more_of_what_was_seen() -> None:
    """3 steps of burn-in and 5 trained ones: rows 3 to 7 of what was done, and rows 3 to 8 of what was seen."""
    config = with_lstm(tiny_config("Toy/Chain-v0", burn_in_steps=3))
    algorithm = Listening(config.learner)
    part = Learner(make_network(config, SPEC.observation_shape, SPEC.num_actions, 0), algorithm, config, CPU)
    batch = random_batch(config, SPEC, 16)
    assert batch.terminated[3:].any()
    assert batch.truncated[3:].any()
    part.update(batch)
    ((online, data, _),) = algorithm.given
    for name in Seen._fields:
        np.testing.assert_array_equal(getattr(data.seen, name), getattr(batch, name)[3:9], name)
    for name in ("action", "reward", "terminated", "truncated", "behavior_prob"):
        np.testing.assert_array_equal(getattr(data, name), getattr(batch, name)[3:8], name)
    np.testing.assert_array_equal(data.mask, batch.valid[3:8])
    assert len(online.head.value) == 5 + 1


def test_the_learner_adds_the_total_to_what_the_loss_watches() -> None:
    part = learner_for(
        v_loss_scale=0.5,
        q_loss_scale=2.0,
        policy_loss_scale=3.0,
        forward_dynamics_scale=0.25,
        inverse_dynamics_scale=0.75,
    )
    metrics = part.update(random_batch(part._config, SPEC, 6))
    scales = {"v": 0.5, "q": 2.0, "policy": 3.0, "forward_dynamics": 0.25, "inverse_dynamics": 0.75}
    expected = sum(scale * metrics[f"loss/{name}"] for name, scale in scales.items())
    assert metrics["loss/total"] == pytest.approx(expected, rel=1e-5)


def test_health_is_watched_at_the_first_update_and_then_at_every_fourth() -> None:
    part = learner_for()
    batch = random_batch(part._config, SPEC, 6)
    watched = ["policy/entropy" in part.update(batch) for _ in range(9)]
    assert HEALTH_EVERY_UPDATES == 4
    assert watched == [True, False, False, False, True, False, False, False, True]
