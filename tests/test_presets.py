"""The ``paper`` scale against the paper's tables, row by row; presets against its ablation table."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from gdi.config import Config, config_from_json, config_to_json, differences, validate
from gdi.envs.protocols import PROTOCOLS
from gdi.errors import UserError
from gdi.presets import PRESETS, SCALES, default_scale, make_config
from gdi.rewards import log_shape, root_shape

PAPER = make_config("gdi-i3", env="ALE/Breakout-v5", scale="paper")
H3 = make_config("gdi-h3", env="ALE/Breakout-v5", scale="paper")
LEARNER, CONTROLLER, SPACE = PAPER.learner, PAPER.controller, PAPER.index_space
DATA, OPTIMIZER = PAPER.data, PAPER.optimizer

# tab:fixed_model_hyperparameters_atari, every row: (name as printed, value as printed, value here).
ROWS: list[tuple[str, Any, Any]] = [
    ("Num. Frames", 200_000_000, PAPER.steps * 4),  # Num. Action Repeats 4 (tab:ale_process)
    ("Replay", 2, DATA.replay),
    ("Num. Environments", 160, PAPER.env.num_envs),
    ("GDI-I3 Reward Shape", ("log",), PAPER.learner.reward_shapes),
    ("GDI-H3 Reward Shape 1, 2", ("log", "root"), H3.learner.reward_shapes),
    ("(no factor on the shaped reward)", ((1.0,), (1.0, 1.0)), (PAPER.learner.reward_scales, H3.learner.reward_scales)),
    ("Burn-in", 40, DATA.burn_in_steps),
    ("Seq-length", 80, DATA.sequence_steps),
    ("Batch size", 64, DATA.batch_size_sequences),
    ("Discount", 0.997, LEARNER.discount),
    ("V-loss Scaling", 1.0, LEARNER.v_loss_scale),
    ("Q-loss Scaling", 10.0, LEARNER.q_loss_scale),
    ("pi-loss Scaling", 10.0, LEARNER.policy_loss_scale),
    ("Importance Sampling Clip c", 1.05, LEARNER.c_bar),
    ("Importance Sampling Clip rho", 1.05, LEARNER.rho_bar),
    ("Backbone", "impala-deep", PAPER.network.torso),
    ("LSTM Units", 256, PAPER.network.lstm_units),
    ("Weight Decay Rate", 0.01, OPTIMIZER.weight_decay),
    ("Learning Rate", 5e-4, OPTIMIZER.learning_rate),
    ("Warmup Steps", 4000, OPTIMIZER.warmup_updates),
    ("AdamW beta1", 0.9, OPTIMIZER.adam_beta_1),
    ("AdamW beta2", 0.98, OPTIMIZER.adam_beta_2),
    ("AdamW epsilon", 1e-6, OPTIMIZER.adam_epsilon),
    ("AdamW Clip Norm", 50.0, OPTIMIZER.clip_norm),
    ("Auxiliary Forward Dynamic Task", True, LEARNER.forward_dynamics_scale > 0),
    ("Auxiliary Inverse Dynamic Task", True, LEARNER.inverse_dynamics_scale > 0),
    ("Learner Push Model Every N Steps", 25, DATA.push_every_updates),
    ("Actor Pull Model Every N Steps", 64, DATA.pull_every_steps),
    ("Num. Bandits", 7, CONTROLLER.num_bandits),
    ("Bandit Learning Rate", (0.05, 0.1, 0.2), CONTROLLER.learning_rates),
    ("Bandit Tiling Width", (2, 3, 4), CONTROLLER.tile_widths),
    ("Num. Bandit Candidates", 3, CONTROLLER.num_candidates),
    ("Offset of Tile coding", 60, CONTROLLER.tile_offset_high),
    ("Accuracy of Tile coding", (2, 3, 4), CONTROLLER.tile_widths),
    ("Accuracy of Search Range 1/tau1", 1.0, SPACE.inverse_tau_1.block_width),
    ("Accuracy of Search Range 1/tau2", 1.0, SPACE.inverse_tau_2.block_width),
    ("Accuracy of Search Range epsilon", 0.1, SPACE.epsilon.block_width),
    (
        "Fixed Selection",
        (1.0, 0.0, 1.0),
        (SPACE.inverse_tau_1.fixed_value, SPACE.inverse_tau_2.fixed_value, SPACE.epsilon.fixed_value),
    ),
    ("Bandit UCB Scaling", 1.0, CONTROLLER.ucb_scale),
    ("Bandit Search Range 1/tau1", (0.0, 50.0), (SPACE.inverse_tau_1.low, SPACE.inverse_tau_1.high)),
    ("Bandit Search Range 1/tau2", (0.0, 50.0), (SPACE.inverse_tau_2.low, SPACE.inverse_tau_2.high)),
    ("Bandit Search Range epsilon", (0.0, 1.0), (SPACE.epsilon.low, SPACE.epsilon.high)),
]
PROTOCOL = PROTOCOLS["paper"]
# tab:ale_process, row by row: (row, printed value, ours).
ALE_ROWS: list[tuple[str, Any, Any]] = [
    ("Sticky action probability", 0.0, PROTOCOL.sticky_action_prob),
    ("Life information", False, PROTOCOL.life_information),
    ("Image Size", 84, PROTOCOL.image_side),
    ("Num. Action Repeats", 4, PROTOCOL.action_repeat),
    ("Num. Frame Stacks", 4, PROTOCOL.frame_stack),
    ("Action Space full", True, PROTOCOL.full_action_space),
    ("Max episode length", 100_000, PROTOCOL.cut_frames),
    ("Random noops range", 30, PROTOCOL.max_noop_frames),
]
# "Random modes and difficulties: No" is no option; "Grayscaled" is the shape of a frame, tested in test_atari.py.
# Rows that are not numbers of a config but properties of the code, and where each is tested.
PROPERTIES = {
    "Reward Clip": "no such option: test_no_option_for_what_the_paper_refuses",
    "Intrinsic Reward": "no such option: test_no_option_for_what_the_paper_refuses",
    "Entropy Regularization": "no such option: test_no_option_for_what_the_paper_refuses",
    "Burn-in Stored Recurrent State": "test_actor: stored state is the state at the first step",
    "Bootstrap": "test_learner: terminal stops the bootstrap, truncation does not",
    "Optimizer": "test_learner: weight decay shrinks weights and spares biases",
    "Weight Decay Schedule": "test_learner: weight decay anneals to zero",
    "Learning Rate Schedule": "test_learner: learning rate warms up and anneals to zero",
}


@pytest.mark.parametrize(("name", "printed", "ours"), [*ROWS, *ALE_ROWS], ids=[row[0] for row in [*ROWS, *ALE_ROWS]])
def test_paper_scale_equals_the_tables(name: str, printed: Any, ours: Any) -> None:
    assert ours == printed


def all_fields(value: Any) -> list[str]:
    names = []
    for f in fields(value):
        inner = getattr(value, f.name)
        names += all_fields(inner) if is_dataclass(inner) else [f.name]
    return names


def test_no_option_for_what_the_paper_refuses() -> None:
    names = " ".join(all_fields(PAPER))
    for word in ("clip_reward", "reward_clip", "intrinsic", "entropy"):
        assert word not in names
    assert "Entropy Regularization" in PROPERTIES


def test_shapes_named_in_the_table_are_the_ones_used() -> None:
    import torch

    r = torch.tensor([3.0, -3.0])
    # log(|r| + 1)·(2·1{r >= 0} − 1{r < 0}), and sign(r)·((|r| + 1)^0.25 − 1) + 0.001·r
    torch.testing.assert_close(log_shape(r), torch.log(torch.tensor(4.0)) * torch.tensor([2.0, -1.0]))
    torch.testing.assert_close(root_shape(r), torch.tensor([4.0**0.25 - 1 + 0.003, 1 - 4.0**0.25 - 0.003]))


def test_planned_updates_of_the_paper() -> None:
    assert PAPER.planned_updates == 19_531
    assert OPTIMIZER.warmup_updates / PAPER.planned_updates == pytest.approx(0.2048, abs=1e-4)


# tab:ablation_setting: (preset, families, searched axes, controller).
ABLATIONS = [
    ("gdi-i3", 1, {"inverse_tau_1", "inverse_tau_2", "epsilon"}, "tile-bandit"),
    ("gdi-h3", 2, {"inverse_tau_1", "inverse_tau_2", "epsilon"}, "tile-bandit"),
    ("fixed", 1, {"inverse_tau_1", "inverse_tau_2", "epsilon"}, "fixed"),
    ("random", 1, {"inverse_tau_1", "inverse_tau_2", "epsilon"}, "uniform"),
    ("boltzmann", 1, {"inverse_tau_1"}, "tile-bandit"),
    ("epsilon-greedy", 1, {"epsilon"}, "tile-bandit"),
]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(("preset", "families", "searched", "kind"), ABLATIONS)
def test_presets_are_the_ablation_table(preset: str, families: int, searched: set[str], kind: str, scale: str) -> None:
    config = validate(make_config(preset, env="CartPole-v1", scale=scale))
    assert config.network.families == families
    space = config.index_space
    assert {f.name for f in fields(space) if getattr(space, f.name).search} == searched
    assert config.controller.kind == kind


def test_boltzmann_is_one_softmax_and_epsilon_greedy_mixes_uniform_with_near_greedy() -> None:
    boltzmann = make_config("boltzmann", scale="paper").index_space
    assert boltzmann.epsilon.fixed_value == 1.0
    greedy = make_config("epsilon-greedy", scale="paper").index_space
    assert (greedy.inverse_tau_1.fixed_value, greedy.inverse_tau_2.fixed_value) == (0.0, 50.0)


def test_an_ablation_differs_from_gdi_i3_only_in_what_it_ablates() -> None:
    for scale in SCALES:
        base = make_config("gdi-i3", env="CartPole-v1", scale=scale)
        for preset in PRESETS.keys() - {"dqn", "ppo", "impala"}:
            changed = {name for name, _, _ in differences(base, make_config(preset, env="CartPole-v1", scale=scale))}
            allowed = ("preset", "network.families", "learner.reward_", "controller", "index_space.")
            assert all(name.startswith(allowed) for name in changed), (preset, changed)


def test_whole_numbers_of_steps_may_be_written_as_floats() -> None:
    config = make_config("gdi-i3", "CartPole-v1", steps=1e3)
    assert config == make_config("gdi-i3", "CartPole-v1", steps=1000)
    assert isinstance(config.steps, int)
    with pytest.raises(UserError, match=r"--steps must be of type int, not 1000\.5"):
        validate(make_config("gdi-i3", "CartPole-v1", steps=1000.5))


@pytest.mark.parametrize(
    ("keyword", "advice"),
    [
        ({"lr": 1e-3}, "replace(config, optimizer=replace(config.optimizer, learning_rate=0.001))."),
        ({"num_envs": 4}, "replace(config, env=replace(config.env, num_envs=4))."),
        ({"wandb": True}, "use scale, steps or seed"),
    ],
)
def test_an_unknown_keyword_is_answered_with_the_way_to_set_it(keyword: dict[str, Any], advice: str) -> None:
    with pytest.raises(UserError, match=re.escape(advice)) as error:
        make_config("gdi-i3", "CartPole-v1", **keyword)
    assert str(error.value).startswith(f"make_config has no keyword {next(iter(keyword))!r}: use ")


def test_default_scale() -> None:
    assert default_scale("MinAtar/Breakout-v0") == "minatar"
    assert default_scale("CartPole-v1") == "classic"
    assert default_scale("ALE/Pong-v5") in ("paper", "atari-cpu")  # by the GPU


@pytest.mark.parametrize("preset", PRESETS)
def test_config_survives_json(preset: str) -> None:
    config = make_config(preset, env="MinAtar/Breakout-v0", steps=123, seed=4)
    assert config_from_json(config_to_json(config)) == config


def test_config_of_another_version_is_refused() -> None:
    text = config_to_json(PAPER).replace('"replay"', '"reply"')
    with pytest.raises(UserError, match=r"data\.repl"):
        config_from_json(text)


def change(config: Config, dotted: str, value: Any) -> Config:
    section, name = dotted.split(".")
    if section == "root":
        return replace(config, **{name: value})
    return replace(config, **{section: replace(getattr(config, section), **{name: value})})


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("root.steps", 0, "--steps must be greater than 0"),
        ("root.seed", -1, "--seed must be 0 or more"),
        ("env.num_envs", 0, "--env.num-envs"),
        ("env.num_envs", -3, "--env.num-envs"),
        ("env.id", "", "--env"),
        ("data.batch_size_sequences", 0, "--data.batch-size-sequences"),
        ("data.replay", 0, "--data.replay"),
        ("learner.discount", 1.0, "--learner.discount"),
        ("data.burn_in_steps", 200, "longer than the memory, which spans 160 steps"),
        ("optimizer.learning_rate", 0.0, "--optimizer.learning-rate"),
        ("optimizer.adam_beta_2", 1.0, "--optimizer.adam-beta-2"),
        ("network.lstm_units", 0, "--data.burn-in-steps 40 warms up a recurrent state"),
        ("network.families", 2, "one shape per family"),
        ("network.shared_torso", True, "shares between two families"),
        ("controller.num_bandits", 0, "--controller.num-bandits"),
        ("controller.learning_rates", (), "--controller.learning-rates"),
        ("controller.tile_widths", (0,), "--controller.tile-widths"),
        ("evaluation.episodes", 0, "--evaluation.episodes"),
        ("run.keep_checkpoints", 0, "--run.keep-checkpoints"),
        ("run.device", "tpu", "--run.device"),
    ],
)
def test_settings_that_cannot_work_are_refused(field: str, value: Any, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        validate(change(PAPER, field, value))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("controller.offset_mode", "Literal", "--controller.offset-mode must be one of modulo, literal"),
        ("learner.retrace_form", "Expected", "--learner.retrace-form must be one of expected, sarsa"),
        ("network.families", 3, "--network.families must be one of 1, 2"),
        ("learner.reward_shapes", ("cube",), "--learner.reward-shapes must be one of"),
        ("learner.reward_shapes", ["log"], "must be a tuple"),
        ("learner.reward_scales", (0.0,), "one positive factor per family"),
        ("root.steps", 1000.5, "--steps must be of type int"),
        ("optimizer.learning_rate", "fast", "--optimizer.learning-rate must be of type float"),
        ("learner.q_stop_gradient", 1, "--learner.q-stop-gradient must be of type bool"),
        ("env.num_envs", True, "--env.num-envs must be of type int"),
    ],
)
def test_a_choice_or_type_that_does_not_exist_is_refused(field: str, value: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        validate(change(PAPER, field, value))


@pytest.mark.parametrize(
    ("axis", "message"),
    [
        ({"high": 0.0}, "must be greater than low"),
        ({"block_width": 0.0}, "block-width must be greater than 0"),
        ({"block_width": 51.0}, "wider than the range"),
        ({"low": -1.0}, "low must be 0 or more"),
    ],
)
def test_axes_that_cannot_work_are_refused(axis: dict[str, float], message: str) -> None:
    space = replace(SPACE, inverse_tau_1=replace(SPACE.inverse_tau_1, **axis))
    with pytest.raises(UserError, match=message):
        validate(replace(PAPER, index_space=space))
