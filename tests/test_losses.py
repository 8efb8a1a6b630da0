"""The whole loss against a literal transcription: every target by its double sum, every term by hand, in NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gdi.algorithms import Transitions
from gdi.algorithms.gdi import GDI, Head
from gdi.algorithms.impala import IMPALA
from gdi.algorithms.softmax import Head as SoftmaxHead
from gdi.config import GDIConfig, IMPALAConfig
from gdi.networks import AgentOutput, Seen
from helpers import make_network, random_batch, seen_of, tiny_config, transitions, with_lstm

T, B, A = 9, 4, 3
GAMMA, RHO_BAR, C_BAR = 0.9, 1.3, 0.8


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def shape(kind: str, r: float) -> float:
    if kind == "log":
        return float(np.log(abs(r) + 1) * (2 if r >= 0 else -1))
    return float(np.sign(r) * ((abs(r) + 1) ** 0.25 - 1) + 0.001 * r)


class Literal:
    """One sequence b and family f of the batch, target by target."""

    def __init__(self, data: dict[str, np.ndarray], b: int, f: int, families: int, sarsa: bool) -> None:
        self.v = data["value"][:, b, f]
        index, advantage = data["index"][:, b], data["advantage"][:-1, b]
        first, last = advantage[:, 0], advantage[:, families - 1]
        self.pi = index[:, 2:] * softmax(first * index[:, :1]) + (1 - index[:, 2:]) * softmax(last * index[:, 1:2])
        action = data["action"][:, b]
        steps = np.arange(T)
        self.pi_taken = self.pi[steps, action]
        self.valid = data["valid"][:, b]
        self.ratio = np.where(self.valid, self.pi_taken / data["behavior_prob"][:, b], 0.0)
        scale = (0.5, 2.0)[f]
        self.r = np.array([scale * shape(("log", "root")[f], r) for r in data["reward"][:, b]])
        self.gamma = np.where(data["terminated"][:, b], 0.0, GAMMA)
        own = advantage[:, f]
        self.q = own[steps, action] - (self.pi * own).sum(-1) + self.v[:-1]
        self.sarsa = sarsa

    def discounts(self, t: int, k: int) -> float:
        return float(np.prod(self.gamma[t : t + k]))

    def v_target(self, t: int) -> float:
        """V(s_t) + Σ_k γ^k c_[t:t+k−1] ρ_{t+k} δ_{t+k}."""
        total = self.v[t]
        for k in range(T - t):
            traces = np.prod(np.minimum(self.ratio[t : t + k], C_BAR))
            i = t + k
            delta = self.r[i] + self.gamma[i] * self.v[i + 1] - self.v[i]
            total += self.discounts(t, k) * traces * min(self.ratio[i], RHO_BAR) * delta
        return float(total)

    def q_target(self, t: int) -> float:
        """Q(s_t, a_t) + Σ_k γ^k c_[t+1:t+k] δ^Q_{t+k}."""
        total = self.q[t]
        for k in range(T - t):
            i = t + k
            traces = np.prod(np.minimum(self.ratio[t + 1 : i + 1], C_BAR))
            uses_q = self.sarsa and i + 1 < T and self.valid[i + 1]
            following = self.q[i + 1] if uses_q else self.v[i + 1]
            total += self.discounts(t, k) * traces * (self.r[i] + self.gamma[i] * following - self.q[i])
        return float(total)

    def gain(self, t: int) -> float:
        following = self.v_target(t + 1) if t + 1 < T else self.v[T]
        return float(min(self.ratio[t], RHO_BAR) * (self.r[t] + self.gamma[t] * following - self.v[t]))


@pytest.mark.parametrize("form", ["expected", "sarsa"])
@pytest.mark.parametrize("families", [1, 2])
def test_losses_equal_their_literal_transcription(form: str, families: int) -> None:
    rng = np.random.default_rng(families)
    data = {
        "advantage": rng.normal(size=(T + 1, B, families, A)),
        "value": rng.normal(size=(T + 1, B, families)),
        "index": np.stack([rng.uniform(0, 3, (T, B)), rng.uniform(0, 3, (T, B)), rng.random((T, B))], -1),
        "action": rng.integers(A, size=(T, B)),
        "reward": rng.normal(size=(T, B)) * 3,
        "terminated": np.zeros((T, B), bool),
        "valid": np.ones((T, B), bool),
        "behavior_prob": rng.uniform(0.1, 0.9, (T, B)),
    }
    data["terminated"][3, 0] = True  # an end, then its reset
    data["valid"][4, 0] = False
    data["valid"][6, 1] = False  # a reset after a truncation
    data["valid"][7:, 2] = False  # the step budget ran out
    config = replace(
        GDIConfig(), discount=GAMMA, rho_bar=RHO_BAR, c_bar=C_BAR, retrace_form=form,
        v_loss_scale=0.7, q_loss_scale=1.9, policy_loss_scale=2.3,
        reward_shapes=("log", "root")[:families], reward_scales=(0.5, 2.0)[:families],
    )  # fmt: skip

    v_loss = q_loss = policy_loss = 0.0
    for b in range(B):
        for f in range(families):
            one = Literal(data, b, f, families, form == "sarsa")
            assert one.ratio.max() > RHO_BAR
            for t in np.flatnonzero(one.valid):
                v_loss += 0.5 * (one.v_target(t) - one.v[t]) ** 2
                q_loss += 0.5 * (one.q_target(t) - one.q[t]) ** 2
                policy_loss += -one.gain(t) * np.log(one.pi_taken[t])
    count = data["valid"].sum()

    network = make_network(tiny_config("Toy/Chain-v0", "gdi-h3" if families == 2 else "gdi-i3"), (3,), A, 0)
    tensors = {name: torch.from_numpy(value) for name, value in data.items()}
    output = AgentOutput(Head(tensors.pop("advantage"), tensors.pop("value")), [], torch.zeros(0))
    losses = GDI(config).loss(network, output, transitions(mask=tensors.pop("valid"), **tensors))
    assert losses.metrics["loss/v"].item() == pytest.approx(v_loss / count)
    assert losses.metrics["loss/q"].item() == pytest.approx(q_loss / count)
    assert losses.metrics["loss/policy"].item() == pytest.approx(policy_loss / count)
    expected = (0.7 * v_loss + 1.9 * q_loss + 2.3 * policy_loss) / count
    assert losses.total.item() == pytest.approx(expected)


@pytest.mark.parametrize("task", ["forward", "inverse"])
def test_each_auxiliary_scale_weighs_its_own_task(task: str) -> None:
    scales = {"forward_dynamics_scale": 0.0, "inverse_dynamics_scale": 0.0} | {f"{task}_dynamics_scale": 0.25}
    config = tiny_config("Toy/Chain-v0", v_loss_scale=0.0, q_loss_scale=0.0, policy_loss_scale=0.0, **scales)
    from gdi.envs.base import EnvSpec

    spec = EnvSpec((3,), np.dtype(np.float32), A)
    network = make_network(config, (3,), A, 0)
    batch = random_batch(config, spec, B)
    inputs = Seen(*(torch.from_numpy(getattr(batch, n)) for n in Seen._fields))
    fields = ("action", "reward", "terminated", "truncated", "valid", "behavior_prob")
    data = Transitions(inputs, *(torch.from_numpy(getattr(batch, n)) for n in fields))
    output = network(inputs, network.initial_state(B))
    losses = GDI(config.learner).loss(network, output, data)
    wanted = losses.metrics[f"loss/{task}_dynamics"].item()
    assert wanted > 0
    assert losses.total.item() == pytest.approx(0.25 * wanted, rel=1e-5)


def test_the_core_sees_the_previous_reward_shaped_and_scaled() -> None:
    """A log-shaped agent must not tell a reward r from another that has the same shaped value; a raw one would."""
    config = with_lstm(tiny_config("Toy/Chain-v0", reward_shapes=("log",), reward_scales=(0.15,)))
    network = make_network(config, (3,), A, 0)
    seen: list[torch.Tensor] = []
    core = network.encoders[0].core
    assert core is not None
    core.register_forward_hook(lambda module, args, output: seen.append(args[0]))
    inputs = seen_of(
        torch.zeros(1, 1, 3), torch.zeros(1, 1, dtype=torch.bool), torch.zeros(1, 1, dtype=torch.long),
        torch.full((1, 1), -3.0), torch.zeros(1, 1, 3),
    )  # fmt: skip
    network(inputs, network.initial_state(1))
    scale = config.learner.reward_scales[0]
    assert seen[0][0, 0, -1].item() == pytest.approx(-scale * np.log(4.0), rel=1e-5)


def noise_for_a_loss() -> tuple[AgentOutput, Transitions]:
    rng = np.random.default_rng(0)
    head = Head(torch.from_numpy(rng.normal(size=(T + 1, B, 1, A))), torch.from_numpy(rng.normal(size=(T + 1, B, 1))))
    data = transitions(
        action=torch.from_numpy(rng.integers(A, size=(T, B))),
        reward=torch.from_numpy(rng.normal(size=(T, B))),
        terminated=torch.zeros(T, B, dtype=torch.bool),
        mask=torch.from_numpy(rng.random((T, B)) < 0.8),
        behavior_prob=torch.from_numpy(rng.uniform(0.1, 0.9, (T, B))),
        index=torch.from_numpy(rng.random((T + 1, B, 3))),
    )
    return AgentOutput(head, [], torch.zeros(0)), data


def test_the_bootstrap_row_has_no_policy() -> None:
    """V(s_T) bootstraps, and no action is taken there: neither λ nor A of row T counts. Those of row T − 1 do."""
    output, data = noise_for_a_loss()
    network = make_network(tiny_config("Toy/Chain-v0"), (3,), A, 0)

    def total(row: int, *, of: str) -> float:
        head, index = output.head, data.seen.index
        if of == "index":
            index = index.clone()
            index[row] = 0.25
        else:
            head = head._replace(advantage=head.advantage.clone())
            head.advantage[row, ..., 0] += 1.0
        changed = data._replace(seen=data.seen._replace(index=index))
        return GDI(GDIConfig()).loss(network, output._replace(head=head), changed).total.item()

    unchanged = GDI(GDIConfig()).loss(network, output, data).total.item()
    for of in ("index", "advantage"):
        assert total(T, of=of) == unchanged
        assert total(T - 1, of=of) != unchanged


def test_health_adds_metrics_and_leaves_the_loss_alone() -> None:
    output, data = noise_for_a_loss()
    network = make_network(tiny_config("Toy/Chain-v0"), (3,), A, 0)
    watched, plain = (GDI(GDIConfig()).loss(network, output, data, health=health) for health in (True, False))
    assert watched.total.item() == plain.total.item()
    assert set(plain.metrics) == {"loss/v", "loss/q", "loss/policy"}
    added = set(watched.metrics) - set(plain.metrics)
    assert {name.partition("/")[0] for name in added} == {"policy", "value"}
    assert len(added) == 4 + 3


def test_a_step_that_is_no_transition_may_have_any_probability() -> None:
    """Its ratio is 0 by choice, not by a product: 0 times the infinity of π/0 would be none."""
    output, data = noise_for_a_loss()
    network = make_network(tiny_config("Toy/Chain-v0"), (3,), A, 0)
    odd = data._replace(behavior_prob=data.behavior_prob.where(data.mask, 0.0))
    assert (odd.behavior_prob == 0).any()
    plain, same = (GDI(GDIConfig()).loss(network, output, found) for found in (data, odd))
    assert same.total.item() == plain.total.item()
    assert np.isfinite(plain.total.item())
    softmax_head = SoftmaxHead(output.head.advantage, output.head.value)
    output = output._replace(head=softmax_head)
    index = data.seen.index[..., :2]
    plain, same = (
        IMPALA(IMPALAConfig()).loss(network, output, found._replace(seen=found.seen._replace(index=index)), health=True)
        for found in (data, odd)
    )
    assert same.total.item() == plain.total.item()
    assert same.metrics["policy/ratio_mean"] == plain.metrics["policy/ratio_mean"]
