"""Torsos in bfloat16: what is rounded, what is not, and that acting, learning and the bench all do it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import gdi
from gdi import policy
from gdi.cli.main import main
from gdi.config import Config, config_from_json
from gdi.envs import make_env
from gdi.errors import UserError
from gdi.networks import AgentNetwork, Seen
from gdi.networks.precision import arithmetic
from gdi.networks.torsos import FirstConvolution
from gdi.presets import make_config
from gdi.runtime.bench import bare_window
from gdi.runtime.local import build
from gdi.runtime.run_log import read_metrics
from helpers import make_actor, make_network, randomize_advantages, seen_of, tiny_config

CPU = torch.device("cpu")
SHAPE, ACTIONS = (84, 84, 4), 18


def atari(game: str = "pong", precision: str = "bfloat16", torso: str = "nature") -> Config:
    config = make_config("gdi-i3", game, scale="atari-cpu", steps=200, seed=5)
    return replace(
        config,
        env=replace(config.env, num_envs=2, max_episode_steps=30),  # a whole game of Pong takes a thousand
        network=replace(config.network, torso=torso, hidden_units=32, lstm_units=16),
        data=replace(config.data, batch_size_sequences=2, sequence_steps=5),
        evaluation=replace(config.evaluation, every_steps=200, episodes=1),
        run=replace(
            config.run, threads=1, precision=precision, log_every_steps=50, checkpoint_every_steps=100, workers=2
        ),
    )


def network_of(config: Config) -> AgentNetwork:
    network = make_network(config, SHAPE, ACTIONS, 0)
    randomize_advantages(network)
    return network


@cache
def played(game: str, steps: int = 20) -> Seen:
    """Real frames under random play in two copies of a game, after its first seconds."""
    env = make_env(replace(atari(game).env, max_episode_steps=0), threads=1)
    rng = np.random.default_rng(0)
    env.reset(0)
    frames = [env.step(rng.integers(env.spec.num_actions, size=2)).obs.copy() for _ in range(60 + steps + 3)][60:]
    env.close()
    stacks = np.stack([np.stack(frames[t : t + 4], axis=-1) for t in range(steps)])
    none = torch.zeros(steps, 2)
    return seen_of(torch.from_numpy(stacks), none.bool(), none.long(), none, none.unsqueeze(-1))


@pytest.mark.parametrize("torso", ["nature", "impala-shallow"])
@pytest.mark.parametrize("game", ["pong", "breakout"])
def test_outputs_and_gradients_are_those_of_float32_up_to_rounding(game: str, torso: str) -> None:
    """On real frames, of which two differ by little. A bfloat16 has 8 bits: 1 part in 256, a few times over."""
    x = played(game)
    direction = torch.randn(20, 2, 1, generator=torch.Generator().manual_seed(1))
    found = {}
    for precision in ("float32", "bfloat16"):
        network = network_of(atari(game, precision, torso))
        output = network(x, network.initial_state(2))
        parameters = dict(network.encoders.named_parameters())
        gradients = torch.autograd.grad(output.head.value, list(parameters.values()), direction)
        found[precision] = output, dict(zip(parameters, gradients, strict=True))
    (exact, exact_gradients), (rounded, gradients) = found.values()
    assert {t.dtype for t in (*gradients.values(), rounded.head.advantage, rounded.features[0])} == {torch.float32}
    variation = exact.features[0] - exact.features[0].mean((0, 1))
    error = float((rounded.features[0] - exact.features[0]).detach().norm() / variation.detach().norm())
    assert 1e-4 < error < 0.2  # of what tells one frame from another
    for name, gradient in gradients.items():
        assert (gradient - exact_gradients[name]).norm() < 0.3 * exact_gradients[name].norm(), name


def test_a_pixel_minus_its_background_is_exact() -> None:
    frames = torch.randint(0, 256, (3, *SHAPE), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    layer = FirstConvolution(4, 16)
    exact = layer.prepare(frames)
    with arithmetic("bfloat16", CPU):
        rounded = layer.prepare(frames)
    assert rounded.dtype == torch.bfloat16
    assert exact.dtype == torch.float32
    assert torch.equal(rounded.float(), exact)
    assert exact.min() < -100
    assert exact.max() > 100


def test_the_probability_acted_with_is_the_learners() -> None:
    """Step by step in the actor, or a whole window at once in the learner: one policy, so that π/μ = 1 at equal θ."""
    config = atari()
    env = make_env(config.env, threads=1)
    actor, network = make_actor(env, config)
    index = (1.0, 2.0, 0.5)
    window, _, _ = actor.collect(lambda envs: [index for _ in envs], 10**6)
    env.close()
    stacks = np.stack([window.obs[t : t + 5] for t in range(4)], axis=-1)
    x = seen_of(
        torch.from_numpy(stacks),
        *(torch.from_numpy(getattr(window, name)[:-1]) for name in ("episode_start", "previous_action")),
        torch.from_numpy(window.previous_reward[:-1]),
        torch.from_numpy(window.index[:-1]),
    )
    with torch.no_grad():
        advantage = network(x, network.initial_state(config.env.num_envs)).head.advantage
    probs = policy.log_probs(advantage, torch.tensor(index).expand(*advantage.shape[:2], 3)).exp()
    taken = probs.gather(-1, torch.from_numpy(window.action)[..., None])[..., 0]
    np.testing.assert_allclose(window.behavior_prob, taken.numpy(), rtol=1e-3)
    assert 0 < window.behavior_prob.min() < window.behavior_prob.max() < 1


def test_a_run_keeps_its_precision_and_repeats(tmp_path: Path) -> None:
    logs = []
    for name, precision in (("a", "bfloat16"), ("b", "bfloat16"), ("c", "float32")):
        config = atari(precision=precision)
        result = gdi.train(replace(config, steps=60), tmp_path / name)
        assert result.finished
        lines = read_metrics(tmp_path / name, "train")
        logs.append([{k: v for k, v in line.items() if k != "clock"} for line in lines])
        assert json.loads((tmp_path / name / "config.json").read_text())["run"]["precision"] == precision
    assert logs[0] == logs[1]
    assert logs[0] != logs[2]
    agent = gdi.load(tmp_path / "a")
    assert 0 <= agent.act(np.zeros((84, 84), np.uint8)) < ACTIONS


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_ceiling_is_measured_in_the_precision_of_the_run(precision: str) -> None:
    config = atari(precision=precision)
    system = build(config)
    seen: set[torch.dtype] = set()
    network = system.parts.learner.network
    for layer in network.encoders.modules():  # the heads are always in float32
        if isinstance(layer, torch.nn.Conv2d | torch.nn.Linear):
            layer.register_forward_hook(lambda module, inputs, output: seen.add(output.dtype))
    with bare_window(config, system.spec, network, system.plan.chunk_sequences, 1) as run_bare:
        run_bare(lambda: None)
    system.close()
    assert seen == {getattr(torch, precision)}


@pytest.mark.parametrize(
    ("precision", "avx512_bf16", "amx", "told"),
    [
        ("bfloat16", False, False, True),
        ("bfloat16", True, False, False),
        ("bfloat16", False, True, False),
        ("float32", False, False, False),
    ],
)
def test_a_cpu_that_only_imitates_bfloat16_is_told(
    precision: str, avx512_bf16: bool, amx: bool, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: avx512_bf16)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: amx)
    system = build(tiny_config(precision=precision))
    system.close()
    assert ("slower than float32" in system.summary()) == told


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_torso_can_be_compiled(precision: str) -> None:
    """As one graph, with the results of the plain one; the backend needs no C++ compiler, and fuses nothing."""
    encoder = network_of(atari(precision=precision, torso="impala-shallow")).encoders[0]
    frames = played("breakout", 2).obs.flatten(0, 1)
    with torch.no_grad(), arithmetic(precision, CPU):
        plain = encoder.torso(frames)
        encoder.torso.compile(backend="aot_eager", fullgraph=True)
        compiled = encoder.torso(frames)
    assert torch.equal(compiled, plain)


def test_a_run_from_before_the_setting_is_one_in_float32(tmp_path: Path) -> None:
    text = (Path(__file__).parent / "data" / "format1" / "gdi-i3-atari-cpu.json").read_text()
    data = json.loads(text)
    del data["run"]["precision"]
    assert config_from_json(json.dumps(data)) == config_from_json(text)
    assert config_from_json(text).run.precision == "float32"
    del data["run"]["threads"]
    with pytest.raises(UserError, match=r"missing field run\.threads"):
        config_from_json(json.dumps(data))


def test_an_unknown_precision_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--env", "pong", "--run.precision", "float16"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "bfloat16" in told
