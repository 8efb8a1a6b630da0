"""DQN, PPO and IMPALA as whole runs: resumed as if never stopped, with and without E, and bad input in one line."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gdi
from gdi.algorithms import make_algorithm
from gdi.config import (
    FixedConfig,
    SampledReplayConfig,
    UniformConfig,
    axes_of,
    config_from_json,
    config_to_json,
)
from gdi.errors import UserError
from gdi.networks import AgentNetwork, Seen
from gdi.presets import PRESETS, SCALES, make_config
from gdi.theory.live import classify_config
from gdi.theory.taxonomy import GDIClass
from helpers import (
    error_line,
    make_network,
    read_metric_lines,
    saved_network,
    seen_of,
    stop_after,
    tiny_config,
    with_lstm,
)
from systems import small, with_e

CASES = {
    "dqn": small("dqn"),
    "dqn-e": with_e(small("dqn")),
    "ppo": small("ppo"),
    "ppo-e": with_e(small("ppo")),
    "ppo-lstm": with_lstm(small("ppo", slice_steps=0, batch_size_sequences=4)),
    "impala": small("impala"),
    "impala-e-lstm": with_lstm(with_e(small("impala"))),
    "gdi-sampled": replace(
        tiny_config(), data=SampledReplayConfig(
            capacity_transitions=500, learn_start_transitions=100, batch_size_sequences=8, slice_steps=5,
            sequence_steps=5, period_transitions=20,
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_stopped_and_resumed_equals_never_stopped(tmp_path: Path, name: str) -> None:
    config = replace(CASES[name], steps=900, evaluation=replace(CASES[name].evaluation, every_steps=600))
    whole = gdi.train(config, tmp_path / "whole").run_dir
    part = gdi.train(config, tmp_path / "part", console=stop_after(450))
    assert not part.finished
    resumed = gdi.train(config, tmp_path / "part", resume=True)
    assert resumed.finished
    assert resumed.steps == config.steps
    assert read_metric_lines(resumed.run_dir) == read_metric_lines(whole)
    assert (resumed.run_dir / "episodes.csv").read_bytes() == (whole / "episodes.csv").read_bytes()
    for key, value in saved_network(whole).items():
        np.testing.assert_array_equal(value, saved_network(resumed.run_dir)[key])


def test_dqns_updates_are_a_fixed_number_per_transition(tmp_path: Path) -> None:
    result = gdi.train(CASES["dqn"], tmp_path / "run")
    assert result.updates == (2000 - 200) // 4


def test_epsilon_follows_the_clock_and_is_logged(tmp_path: Path) -> None:
    config = small("dqn")
    config = replace(config, controller=replace(config.controller, over_steps=1000, end=0.2))  # type: ignore[call-arg]
    lines = [x for x in read_metric_lines(gdi.train(config, tmp_path / "r").run_dir) if "policy/epsilon" in x]
    means = [line["policy/epsilon"] for line in lines]  # of the drawn steps, not of the newest
    assert means[0] > 0.7
    assert means == sorted(means, reverse=True)
    assert means[-1] < 0.45


@pytest.mark.parametrize("preset", ["dqn", "ppo", "impala"])
def test_the_class_of_each_is_derived_and_e_changes_it(preset: str) -> None:
    """I⁰ without E as published, I¹ with E on one axis, I¹ without E if that axis is drawn uniformly."""
    searched = with_e(small(preset))
    assert classify_config(small(preset)) == GDIClass(False, 0, False)
    assert classify_config(searched) == GDIClass(False, 1, True)
    assert classify_config(replace(searched, controller=UniformConfig())) == GDIClass(False, 1, False)


@pytest.mark.parametrize("preset", PRESETS)
def test_the_policy_depends_on_exactly_the_declared_families(preset: str) -> None:
    """Perturb one family at a time: π under λ changes if the learner says that θ_λ holds it, and only then."""
    config = make_config(preset, "CartPole-v1")
    algorithm, num_families = make_algorithm(config), config.network.families
    network = make_network(config, (4,), 2, 0)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():  # so that no head is 0
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    obs = torch.randn(1, 64, 4, generator=generator)
    axes = axes_of(config.index_space)
    ends = [
        (axis.low, (axis.low + axis.high) / 2, axis.high) if axis.search else (axis.fixed_value,)
        for axis in axes.values()
    ]
    for values in product(*ends):
        declared = config.learner.families_of(dict(zip(axes, values, strict=True)), num_families)
        steps = torch.zeros(1, 64)
        seen = seen_of(obs, steps.bool(), steps.long(), steps, torch.tensor(values).expand(1, 64, len(values)))

        def policy(theta: AgentNetwork, seen: Seen = seen) -> torch.Tensor:
            return algorithm.log_probs(theta(seen, theta.initial_state(64)).head, seen).exp().detach()

        temperatures = [value for name, value in zip(axes, values, strict=True) if name.startswith("inverse_tau")]
        if temperatures and min(temperatures) == 0.0:
            continue  # a temperature without limit: the policy is uniform, whatever the network says
        before = policy(network)
        for family in range(num_families):
            changed = copy.deepcopy(network)
            with torch.no_grad():
                for module in (changed.encoders[family], changed.heads[family]):
                    for parameter in module.parameters():
                        parameter.copy_(torch.randn(parameter.shape, generator=generator))
            name = "θ" if num_families == 1 else f"θ{family + 1}"
            assert torch.equal(policy(changed), before) is (name not in declared), (values, name)


@pytest.mark.parametrize("preset", ["dqn", "ppo", "impala"])
@pytest.mark.parametrize("scale", SCALES)
def test_every_scale_is_valid_and_survives_its_json(preset: str, scale: str) -> None:
    from gdi.config import validate

    env = {"classic": "CartPole-v1", "minatar": "MinAtar/Breakout-v0"}.get(scale, "pong")
    config = validate(make_config(preset, env, scale=scale))
    assert config_from_json(config_to_json(config)) == config
    assert preset in PRESETS


@pytest.mark.parametrize("controller", [FixedConfig(), UniformConfig()])
@pytest.mark.parametrize("preset", ["dqn", "ppo", "impala"])
def test_the_ablations_of_e_run(tmp_path: Path, preset: str, controller: Any) -> None:
    searched = not isinstance(controller, FixedConfig)  # which has nothing to search
    config = replace(with_e(small(preset)) if searched else small(preset), controller=controller, steps=600)
    assert gdi.train(config, tmp_path / "run").finished


BAD = [
    ("dqn", ["--controller", "tile-bandit"], "nothing to search: add --index-space.epsilon.search."),
    ("ppo", ["--controller", "schedule"], "'epsilon' is not a component of λ"),
    ("dqn", ["--network.lstm-units", "8"], "have no recurrent state"),
    ("gdi-i3", ["--data", "sampled", "--network.lstm-units", "8"], "stores no recurrent state"),
    ("ppo", ["--network.lstm-units", "8"], "set slice-steps to 0"),
    ("dqn", ["--data.capacity-transitions", "20"], "smaller than a batch"),
    ("dqn", ["--data.learn-start-transitions", "5000"], "leaves no update in 3000 steps"),
    (
        "dqn",
        ["--learner.n-steps=9", "--data.slice-steps=9", "--data.sequence-steps=2", "--data.learn-start-transitions=8"],
        "before the first slice of 9 steps is whole: raise it to",
    ),
    ("ppo", ["--data.batch-size-sequences", "100"], "does not divide the 2048 slices"),
    ("ppo", ["--data", "sampled"], "PPO trains each window at once"),
    ("dqn", ["--data", "samplde"], "Did you mean 'sampled'?"),
    ("dqn", ["--learner.n-steps", "3"], "set --data.slice-steps 3"),
    ("dqn", ["--data.capacity-transitions", "9000000000", "--data.learn-start-transitions", "100"], "does not fit"),
    ("dqn", ["--learner.rho-bar", "1"], "--learner.rho-bar"),
    (
        "dqn",
        ["--data.capacity-transitions", "9000000000", "--data.learn-start-transitions", "100"],
        "Set --data.capacity-transitions",
    ),
    ("dqn", ["--index-space.inverse-tau.search"], "--index-space.inverse-tau.search"),
    (
        "ppo",
        ["--index-space.inverse-tau.search"],
        "--index-space.inverse-tau.search needs a controller that searches: choose one by --controller, for example",
    ),
    ("dqn", ["--index-space", "softmax"], "does not work with --index-space softmax"),
    ("dqn", ["--data.batch-size-sequences", "200000"], "smaller than a batch"),
    ("dqn", ["--data.learn-start-transitions", "200000"], "more than the memory holds"),
    ("dqn", ["--learner", "dqnn"], "Did you mean 'dqn'?"),
]


@pytest.mark.parametrize(("preset", "words", "expected"), BAD)
def test_bad_input_is_one_line_and_writes_nothing(
    tmp_path: Path, preset: str, words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = tmp_path / "run"
    base = ["train", preset, "--env", "MinAtar/Breakout-v0", "--steps", "3000", "--run-dir", str(run_dir)]
    assert expected in error_line([*base, *words], capsys)
    assert not run_dir.exists()


def test_a_search_by_the_fixed_controller_is_refused_and_early_runs_of_it_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(with_e(small("ppo")), controller=FixedConfig(), steps=300)
    with pytest.raises(UserError, match="needs a controller that searches"):
        gdi.train(config, tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr("gdi.runtime.session.check_new", lambda config: None)
        gdi.train(config, tmp_path / "run")
    assert gdi.load(tmp_path / "run").config == config
    assert gdi.train(config, tmp_path / "run", resume=True).finished
