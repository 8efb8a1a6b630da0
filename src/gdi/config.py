"""Frozen configuration: every field with its unit in its name and its row of the paper's tables beside it.

"Table H" is the paper's table of hyperparameters (tab:fixed_model_hyperparameters_atari); the quoted words are the
row's name. The defaults are the paper's values; presets (``presets.py``) are small differences from them. Validation
says what is wrong and why.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Literal, get_args, get_origin, get_type_hints

from gdi.errors import UserError

# Of one axis: far above the paper's 50, far below what would not fit into memory.
MAX_BLOCKS = 100_000
# Settings that came later, and what runs before them did: those can still be read, resumed and played.
BEFORE_IT_WAS_A_SETTING = {"run.precision": "float32"}
# Limits, of which infinity means none.
MAY_BE_INFINITE = ("rho_bar", "c_bar", "clip_norm", "hang_seconds", "stall_seconds")


@dataclass(frozen=True)
class EnvConfig:
    """Which environment, and how many copies act side by side."""

    id: str = ""
    """Gymnasium id, such as CartPole-v1, or MinAtar/Breakout-v0, or an Atari game: ALE/Pong-v5. Typed as --env."""
    num_envs: int = 160
    """Environments stepped together. Table H "Num. Environments"."""
    max_episode_steps: int = 0
    """Cut episodes here, as truncation; 0 keeps the environment's own limit."""
    protocol: Literal["", "paper", "machado", "saber"] = ""
    """Atari only: how the games are presented and cut. "paper" is tab:ale_process."""


@dataclass(frozen=True)
class AxisConfig:
    """One axis of the index set Λ: searched by the controller, or held at one value."""

    search: bool = True
    """True: the controller chooses on this axis. False: it stays at fixed_value."""
    low: float = 0.0
    """Left end of the search range. Table H "Bandit Search Range"."""
    high: float = 50.0
    """Right end of the search range. Table H "Bandit Search Range"."""
    block_width: float = 1.0
    """acc: there are (high - low) / acc blocks, which with coordinate linear are so wide. Table H "Accuracy of Search
    Range"."""
    coordinate: Literal["linear", "log"] = "linear"
    """linear: blocks equal in the value u. log: as many blocks, equal in log(1 + u), so finer near 0."""
    fixed_value: float = 0.0
    """The value when not searched. Table H "Fixed Selection"."""


@dataclass(frozen=True)
class IndexSpaceConfig:
    """Λ = {(1/τ1, 1/τ2, ε)} (equ: soft epsilon policy space)."""

    inverse_tau_1: AxisConfig = AxisConfig(fixed_value=1.0)
    inverse_tau_2: AxisConfig = AxisConfig(fixed_value=0.0)
    epsilon: AxisConfig = AxisConfig(high=1.0, block_width=0.1, fixed_value=1.0)


@dataclass(frozen=True)
class ControllerConfig:
    """The operator E: how P_Λ learns from episode returns."""

    kind: Literal["tile-bandit", "fixed", "uniform", "multiplicative-weights"] = "tile-bandit"
    """tile-bandit: the paper's ensemble (alg:bva). fixed, uniform: E = identity. multiplicative-weights: asp:2."""
    num_bandits: int = 7
    """M, bandits per axis. Table H "Num. Bandits"."""
    learning_rates: tuple[float, ...] = (0.05, 0.1, 0.2)
    """lr of each bandit is drawn from these. Table H "Bandit Learning Rate"."""
    tile_widths: tuple[int, ...] = (2, 3, 4)
    """ta in blocks, drawn from these. Table H "Bandit Tiling Width" and "Accuracy of Tile coding" (one parameter)."""
    tile_offset_high: int = 60
    """to in blocks, drawn uniformly from 0 to this. Table H "Offset of Tile coding"."""
    offset_mode: Literal["modulo", "literal"] = "modulo"
    """modulo: the offset counts modulo the tile width, as in ordinary tile coding. literal: as eq:bandit_update."""
    num_candidates: int = 3
    """d, candidates per bandit. Table H "Num. Bandit Candidates"."""
    ucb_scale: float = 1.0
    """c of eq:bandit_score. Table H "Bandit UCB Scaling"."""
    step_size: float = 0.1
    """η of asp:2, used by multiplicative-weights only."""
    per_environment: bool = False
    """True: one controller per environment, as alg:i3 is printed; False: one for all training environments."""


@dataclass(frozen=True)
class NetworkConfig:
    """A_θ and V_θ (Equ: i3 casa equ, Equ: h3 casa equ)."""

    torso: Literal["auto", "mlp", "minatar", "nature", "impala-shallow", "impala-deep"] = "impala-deep"
    """Encoder of one observation; auto picks by the observation's shape. Table H "Backbone"."""
    hidden_units: int = 256
    """Width of the torso's dense output layer."""
    lstm_units: int = 256
    """Size of the recurrent core; 0 is feed-forward. Table H "LSTM Units"."""
    families: Literal[1, 2] = 1
    """1: A1 = A2 (GDI-I). 2: two families of trainable variables (GDI-H)."""
    shared_torso: bool = False
    """GDI-H only: share torso and core between the families, a cheaper agent; the paper's families are disjoint."""
    reward_shapes: tuple[Literal["log", "root", "none"], ...] = ("log",)
    """Reward shaping of each family. Table H "GDI-I3 Reward Shape", "GDI-H3 Reward Shape 1", "... 2"."""
    reward_scales: tuple[float, ...] = (1.0,)
    """Factor on each family's shaped reward; small networks and budgets want values of order 1."""


@dataclass(frozen=True)
class LearnerConfig:
    """The operator T: losses, targets and optimizer."""

    batch_size_sequences: int = 64
    """Sequences per update. Table H "Batch size"."""
    burn_in_steps: int = 40
    """Steps unrolled without gradient before the trained ones. Table H "Burn-in"."""
    sequence_steps: int = 80
    """Trained steps of a sequence. Table H "Seq-length"."""
    replay: int = 2
    """Exactly how often each sequence is trained. Table H "Replay"."""
    replay_span_windows: int = 2
    """The uses of a sequence are spread evenly over this many windows of acting; bounds the memory."""
    workers: int = 1
    """Chunks of a batch trained side by side, one thread each, gradients summed; 1 leaves all threads to torch."""
    discount: float = 0.997
    """γ. Table H "Discount"."""
    rho_bar: float = 1.05
    """ρ̄. Table H "Importance Sampling Clip ρ̄"."""
    c_bar: float = 1.05
    """c̄. Table H "Importance Sampling Clip c̄"."""
    retrace_form: Literal["expected", "sarsa"] = "expected"
    """Bootstrap of ReTrace: V(s') = E_π Q(s',·), or the printed Q(s', a')."""
    q_stop_gradient: bool = True
    """True: the Q loss trains A only (no gradient through π and V in Q); False: as printed."""
    v_loss_scale: float = 1.0
    """ξ. Table H "V-loss Scaling"."""
    q_loss_scale: float = 10.0
    """α. Table H "Q-loss Scaling"."""
    policy_loss_scale: float = 10.0
    """β. Table H "π-loss Scaling"."""
    forward_dynamics_scale: float = 0.1
    """Weight of the forward-dynamics task, 0 switches it off. Table H "Auxiliary Forward Dynamic Task"."""
    inverse_dynamics_scale: float = 0.1
    """Weight of the inverse-dynamics task, 0 switches it off. Table H "Auxiliary Inverse Dynamic Task"."""
    learning_rate: float = 5e-4
    """Peak rate. Table H "Learning Rate"."""
    warmup_updates: int = 4000
    """Linear from 0 to the peak, then linear to 0 at the last update; at most a quarter of them. Table H "Warmup
    Steps"."""
    weight_decay: float = 0.01
    """Annealed linearly to 0; not on biases. Table H "Weight Decay Rate"."""
    adam_beta_1: float = 0.9
    """Table H "AdamW β1"."""
    adam_beta_2: float = 0.98
    """Table H "AdamW β2"."""
    adam_epsilon: float = 1e-6
    """Table H "AdamW ε"."""
    clip_norm: float = 50.0
    """Global gradient norm. Table H "AdamW Clip Norm"."""
    max_nonfinite_updates: int = 5
    """This many non-finite losses or gradients in a row stop the run."""
    push_every_updates: int = 25
    """d_push. Table H "Learner Push Model Every N Steps"."""
    pull_every_steps: int = 64
    """d_pull, in steps of each environment. Table H "Actor Pull Model Every N Steps"."""


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation in separate environments, with λ from the controller without its exploration bonus."""

    every_steps: int = 1_000_000
    """Evaluate each time this many training steps have passed, and at the end."""
    episodes: int = 32
    """Episodes per evaluation, shared out over at most 32 environments."""


@dataclass(frozen=True)
class RunConfig:
    """Logging, checkpoints and hardware."""

    log_every_steps: int = 100_000
    """One line of training metrics each time this many steps have passed."""
    checkpoint_every_steps: int = 500_000
    """Save a checkpoint each time this many steps have passed, and at the end."""
    keep_checkpoints: int = 3
    """Newest checkpoints kept; the one with the best evaluation is kept besides."""
    device: str = "auto"
    """Where the networks of learner, actor and evaluator live: auto, cpu or cuda."""
    overlap: bool = False
    """Act and learn at the same time, the data one window older: for a GPU, or a slow environment on several cores.
    On Ray they always do, except in lockstep."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Arithmetic of the torsos: bfloat16 is faster where the hardware has it (AVX512-BF16, AMX, a GPU) and rounds more;
    θ, LSTM, heads, losses and optimizer stay float32."""
    compile: bool = False
    """Compile the torsos with torch.compile: a minute at the start, for long runs on a GPU; needs a C++ compiler."""
    threads: int = 0
    """Threads of torch, and of the Atari emulators; at most one per core that this process may use; 0: all.
    On Ray each process has as many as its CPUs in the placement."""


@dataclass(frozen=True)
class Config:
    """One training run, whole. Equal configs and equal machines give equal runs."""

    preset: str = "gdi-i3"
    scale: str = "paper"
    seed: int = 0
    """Every generator of the run descends from it."""
    steps: int = 50_000_000
    """Environment transitions to train on. Table H "Num. Frames" 200M at "Num. Action Repeats" 4."""
    env: EnvConfig = field(default_factory=EnvConfig)
    index_space: IndexSpaceConfig = field(default_factory=IndexSpaceConfig)
    controller: ControllerConfig = field(default_factory=ControllerConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    run: RunConfig = field(default_factory=RunConfig)


def planned_updates(config: Config) -> int:
    """Learner updates of a whole run, up to the few that resets add: transitions · replay / transitions of a batch.

    For the paper: 50M steps · 2 / (64 · 80) = 19,531.
    """
    learner = config.learner
    batch_transitions = learner.batch_size_sequences * learner.sequence_steps
    return max(1, config.steps * learner.replay // batch_transitions)


def planned_warmup_updates(config: Config) -> int:
    """Updates until the peak rate, at most a quarter of the run's.

    The paper's 4,000 are a fifth of its run. In a run shorter than them the rate would rise to the end.
    """
    return min(config.learner.warmup_updates, planned_updates(config) // 4)


def validate(config: Config) -> Config:
    """Return the config, or raise UserError with the first thing that cannot work and why."""

    def need(condition: bool, message: str) -> None:
        if not condition:
            raise UserError(message)

    def positive(owner: object, prefix: str, *names: str) -> None:
        for name in names:
            value = getattr(owner, name)
            need(value > 0, f"{prefix}{name.replace('_', '-')} must be greater than 0, not {value}.")

    def not_negative(owner: object, prefix: str, *names: str) -> None:
        for name in names:
            value = getattr(owner, name)
            need(value >= 0, f"{prefix}{name.replace('_', '-')} must be 0 or more, not {value}.")

    check_types(config, "--")
    env, learner, controller, network = config.env, config.learner, config.controller, config.network
    need(bool(env.id), "no environment given: add --env, for example --env CartPole-v1.")
    positive(config, "--", "steps")
    not_negative(config, "--", "seed")
    positive(env, "--env.", "num_envs")
    not_negative(env, "--env.", "max_episode_steps")
    positive(network, "--network.", "hidden_units")
    not_negative(network, "--network.", "lstm_units")
    need(
        len(network.reward_shapes) == network.families,
        f"--network.reward-shapes needs one shape per family: {network.families}, not {len(network.reward_shapes)}.",
    )
    need(
        len(network.reward_scales) == network.families and all(scale > 0 for scale in network.reward_scales),
        f"--network.reward-scales needs one positive factor per family ({network.families}), not "
        f"{network.reward_scales}.",
    )
    need(
        not network.shared_torso or network.families == 2,
        "--network.shared-torso shares between two families, and this agent has one: drop it or use gdi-h3.",
    )
    positive(
        learner, "--learner.", "batch_size_sequences", "sequence_steps", "replay", "replay_span_windows", "workers"
    )
    positive(learner, "--learner.", "rho_bar", "c_bar", "learning_rate", "adam_epsilon", "clip_norm")
    positive(learner, "--learner.", "max_nonfinite_updates", "push_every_updates", "pull_every_steps")
    not_negative(learner, "--learner.", "burn_in_steps", "warmup_updates", "weight_decay")
    not_negative(learner, "--learner.", "v_loss_scale", "q_loss_scale", "policy_loss_scale")
    not_negative(learner, "--learner.", "forward_dynamics_scale", "inverse_dynamics_scale")
    need(
        learner.burn_in_steps == 0 or network.lstm_units > 0,
        f"--learner.burn-in-steps {learner.burn_in_steps} warms up a recurrent state, and --network.lstm-units 0 has "
        "none: set burn-in to 0 or give the network an LSTM.",
    )
    kept_steps = learner.sequence_steps * learner.replay_span_windows
    need(
        learner.burn_in_steps <= kept_steps,
        f"--learner.burn-in-steps {learner.burn_in_steps} is longer than the memory, which spans {kept_steps} steps "
        f"(sequence-steps {learner.sequence_steps} x replay-span-windows {learner.replay_span_windows}): shorten it.",
    )
    need(0.0 <= learner.discount < 1.0, f"--learner.discount must be in [0, 1), not {learner.discount}.")
    for name in ("adam_beta_1", "adam_beta_2"):
        value = getattr(learner, name)
        need(0.0 <= value < 1.0, f"--learner.{name.replace('_', '-')} must be in [0, 1), not {value}.")
    for axis_field in fields(config.index_space):
        axis: AxisConfig = getattr(config.index_space, axis_field.name)
        prefix = f"--index-space.{axis_field.name.replace('_', '-')}."
        not_negative(axis, prefix, "low", "fixed_value")
        positive(axis, prefix, "block_width")
        need(axis.high > axis.low, f"{prefix}high {axis.high} must be greater than low {axis.low}.")
        need(
            axis.block_width <= axis.high - axis.low,
            f"{prefix}block-width {axis.block_width} is wider than the range [{axis.low}, {axis.high}].",
        )
        need(
            axis.high - axis.low <= MAX_BLOCKS * axis.block_width,
            f"{prefix}block-width {axis.block_width} cuts the range [{axis.low}, {axis.high}] into more than "
            f"{MAX_BLOCKS:,} blocks: widen it.",
        )
    epsilon = config.index_space.epsilon
    need(
        epsilon.high <= 1.0 and epsilon.fixed_value <= 1.0,
        "--index-space.epsilon is a probability: high and fixed-value must be at most 1.",
    )
    positive(controller, "--controller.", "num_bandits", "num_candidates", "step_size")
    not_negative(controller, "--controller.", "tile_offset_high", "ucb_scale")
    need(
        bool(controller.learning_rates) and all(0 < rate <= 1 for rate in controller.learning_rates),
        f"--controller.learning-rates must be in (0, 1], not {controller.learning_rates}.",
    )
    need(
        bool(controller.tile_widths) and all(width > 0 for width in controller.tile_widths),
        f"--controller.tile-widths must be greater than 0, not {controller.tile_widths}.",
    )
    positive(config.evaluation, "--evaluation.", "every_steps", "episodes")
    positive(config.run, "--run.", "log_every_steps", "checkpoint_every_steps", "keep_checkpoints")
    not_negative(config.run, "--run.", "threads")
    need(
        config.run.device in ("auto", "cpu") or config.run.device.startswith("cuda"),
        f"--run.device must be auto, cpu or cuda, not {config.run.device!r}.",
    )
    return config


def check_types(section: Any, prefix: str) -> None:
    """Every value is of its field's type, every number finite, every choice known, also in configs made in Python."""
    hints = get_type_hints(type(section))
    for f in fields(section):
        value, kind, name = getattr(section, f.name), hints[f.name], f"{prefix}{f.name.replace('_', '-')}"
        if is_dataclass(value):
            check_types(value, f"{name}.")
            continue
        repeated = get_origin(kind) is tuple
        if repeated and not isinstance(value, tuple):
            raise UserError(f"{name} must be a tuple, not {value!r}.")
        inner = get_args(kind)[0] if repeated else kind
        for item in value if repeated else (value,):
            if get_origin(inner) is Literal:
                if item not in get_args(inner):
                    raise UserError(f"{name} must be one of {', '.join(map(str, get_args(inner)))}, not {item!r}.")
            elif isinstance(item, bool) != (inner is bool) or not isinstance(
                item, (int, float) if inner is float else inner
            ):
                raise UserError(f"{name} must be of type {inner.__name__}, not {item!r}.")
            elif inner is float and not (math.isfinite(item) or (item == math.inf and f.name in MAY_BE_INFINITE)):
                raise UserError(f"{name} must be a finite number, not {item!r}.")


def config_to_json(config: Config) -> str:
    return json.dumps(asdict(config), indent=2) + "\n"


def config_from_json(text: str) -> Config:
    """The inverse of ``config_to_json``; an unknown or missing field is an error, not a default.

    Except one that came later, where its value before is known.
    """
    data = json.loads(text)
    config = _build(Config, data, "")
    assert isinstance(config, Config)
    return config


def _build(cls: type[Any], data: Any, path: str) -> Any:
    if not isinstance(data, dict):
        raise UserError(f"config.json: {path or 'the file'} must be an object.")
    hints = get_type_hints(cls)
    known = {f.name for f in fields(cls)}
    later = {name: BEFORE_IT_WAS_A_SETTING.get(f"{path}{name}") for name in known - set(data)}
    data = {**data, **{name: value for name, value in later.items() if value is not None}}
    if set(data) != known:
        odd = sorted(set(data) ^ known)
        raise UserError(f"config.json: unknown or missing field {path}{odd[0]}; it was written by another version.")
    values = {}
    for name, value in data.items():
        kind = hints[name]
        if is_dataclass(kind) and isinstance(kind, type):
            values[name] = _build(kind, value, f"{path}{name}.")
        else:
            values[name] = tuple(value) if isinstance(value, list) else value
    return cls(**values)


def differences(old: Config, new: Config) -> Iterator[tuple[str, Any, Any]]:
    """(dotted field, old value, new value) of every field that differs."""

    def walk(a: Any, b: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
        for f in fields(a):
            left, right = getattr(a, f.name), getattr(b, f.name)
            if is_dataclass(left):
                yield from walk(left, right, f"{path}{f.name}.")
            elif left != right:
                yield f"{path}{f.name}", left, right

    yield from walk(old, new, "")
