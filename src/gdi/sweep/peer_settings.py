"""The settings of the peers, agents of Stable-Baselines3 that are jobs of a sweep like our presets.

A plan changes them by settings that begin with ``sb3.``, such as ``sb3.learning_rate``. Outside MinAtar the defaults
are those of the library. On MinAtar they are as follows, with their sources. They are the same for all five games, and
not tuned on the seeds of our benchmark.

All have GDI's torso at scale ``minatar``: one 3x3 convolution of 16 filters and 128 dense units, both with ReLU (the
network of Young & Tian 2019), then linear heads. All discount by 0.99, as GDI does there.

PPO. The basis is the PPO of gymnax-blines for MinAtar (R. Lange, github.com/RobertTLange/gymnax-blines): 64
environments, 8 minibatches, 4 epochs, clip 0.2, GAE 0.95, entropy 0.01, value 0.5, gradient norm 0.5. It was made for
10M steps. For a tenth of them there are two changes. Rollouts have 32 steps instead of 128, so that 1M steps improve
the policy as often as 4M do there. A minibatch has 256 transitions, as in RL Baselines3 Zoo's PPO for Atari. Adam's
rate goes linearly from 1e-3 to 0. In gymnax-blines it is constant at 5e-4, and in the Zoo it is linear. Every sample is
trained 4 times. RecurrentPPO has the same settings and an LSTM of 128 units.

DQN. The basis is Young & Tian 2019, "MinAtar", and their examples/dqn.py: replay of the last 100,000 transitions,
learning from 5,000 on, batch 32, target network copied every 1,000 steps, ε from 1 to 0.1 over 100,000 steps, Huber
loss. Two changes come from Obando-Ceron & Castro 2021, "Revisiting Rainbow", in their dqn_*.gin for MinAtar. Adam
(2.5e-4, ε 3.125e-4) replaces centered RMSprop at the same rate, and there is one update per 4 steps instead of one per
step. At batch 32 that trains every sample 8 times, as often as GDI does. The 4 steps are taken in 4 environments.
QR-DQN has the same settings.

Evaluation is the same for all agents: every ``evaluation.every_steps``, one episode in each of
``evaluation.episodes`` separate environments, seeded by the run's seed and the steps. PPO samples its policy, as in
training. DQN is greedy except for ε = 0.001 (the default of Dopamine). GDI samples its policy under the λ that its
controller considers best.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from gdi.errors import UserError, did_you_mean, install_hint

if TYPE_CHECKING:
    from gdi.config import Config

PEERS = ("sb3-ppo", "sb3-dqn", "sb3-qrdqn", "sb3-recurrent-ppo")
POLICY_GRADIENT = ("sb3-ppo", "sb3-recurrent-ppo")
# Settings of a plan that begin so are for peers.
OWN = "sb3."
# Settings that peers share with our presets: what is played, and how it is evaluated.
SHARED_SECTIONS = ("evaluation", "env")
NOT_SHARED = ("env.num_envs", "evaluation.greedy", "evaluation.index")

# The arguments of Stable-Baselines3 that a plan may set.
ON_POLICY_ARGUMENTS = (
    *("learning_rate", "n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "clip_range", "ent_coef", "vf_coef"),
    *("max_grad_norm", "target_kl", "normalize_advantage"),
)
OFF_POLICY_ARGUMENTS = (
    *("learning_rate", "buffer_size", "learning_starts", "batch_size", "tau", "gamma", "train_freq", "gradient_steps"),
    *("target_update_interval", "exploration_fraction", "exploration_initial_eps", "exploration_final_eps"),
    "max_grad_norm",
)
# Settings that are ours, and what they mean where they are missing.
MORE_OF_ALL = ("num_envs", "hidden_units", "filters", "adam_epsilon", "learning_rate_end")
MORE_OF: Mapping[str, tuple[str, ...]] = {
    "sb3-ppo": (),
    "sb3-recurrent-ppo": ("lstm_units",),
    "sb3-dqn": ("exploration_steps", "evaluation_epsilon"),
    "sb3-qrdqn": ("exploration_steps", "evaluation_epsilon"),
}
NETWORK = {"filters": 16, "hidden_units": 128}
MINATAR_PPO = {
    "num_envs": 64,
    "n_steps": 32,
    "batch_size": 256,
    "n_epochs": 4,
    "learning_rate": 1e-3,
    "learning_rate_end": 0.0,
    "clip_range": 0.2,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "ent_coef": 0.01,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
    **NETWORK,
}
MINATAR_DQN = {
    "num_envs": 4,
    "buffer_size": 100_000,
    "learning_starts": 5_000,
    "batch_size": 32,
    "train_freq": 1,  # times 4 environments: one update per 4 transitions
    "gradient_steps": 1,
    "target_update_interval": 1_000,
    "learning_rate": 2.5e-4,
    "adam_epsilon": 3.125e-4,
    "gamma": 0.99,
    "exploration_initial_eps": 1.0,
    "exploration_final_eps": 0.1,
    "exploration_steps": 100_000,
    "evaluation_epsilon": 0.001,
    **NETWORK,
}
MINATAR: Mapping[str, Mapping[str, Any]] = {
    "sb3-ppo": MINATAR_PPO,
    "sb3-recurrent-ppo": {**MINATAR_PPO, "lstm_units": 128},
    "sb3-dqn": MINATAR_DQN,
    "sb3-qrdqn": MINATAR_DQN,
}
# The number of environments is no setting of the library.
ELSEWHERE: Mapping[str, Mapping[str, Any]] = {
    "sb3-ppo": {"num_envs": 8},
    "sb3-recurrent-ppo": {"num_envs": 8},
    "sb3-dqn": {"num_envs": 1, "evaluation_epsilon": 0.001},
    "sb3-qrdqn": {"num_envs": 1, "evaluation_epsilon": 0.001},
}


def is_peer(preset: str) -> bool:
    return preset in PEERS


def check_library(presets: Iterable[str]) -> None:
    """Raise UserError if a peer is among the presets and its library is not installed."""
    if any(map(is_peer, presets)) and not (find_spec("stable_baselines3") and find_spec("sb3_contrib")):
        raise UserError(f"the presets sb3-... need Stable-Baselines3, which is not installed: {install_hint('dev')}.")


def known_settings(preset: str) -> tuple[str, ...]:
    """Return the settings of a peer, without their prefix."""
    arguments = ON_POLICY_ARGUMENTS if preset in POLICY_GRADIENT else OFF_POLICY_ARGUMENTS
    return (*arguments, *MORE_OF_ALL, *MORE_OF[preset])


def takes(preset: str, name: str) -> bool:
    """Return True if a peer takes a setting of this full name."""
    if name.startswith(OWN):
        return name.removeprefix(OWN) in known_settings(preset)
    return name == "scale" or (name.partition(".")[0] in SHARED_SECTIONS and name not in NOT_SHARED)


def check_peer_setting(name: str, where: str) -> None:
    """Raise UserError if no peer has a setting of this full name."""
    known = dict.fromkeys(OWN + setting for preset in PEERS for setting in known_settings(preset))
    if name not in known:
        raise UserError(f"{where}: unknown setting {name}.{did_you_mean(name, known)} Settings: {', '.join(known)}.")


def peer_settings(preset: str, env: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a peer in an environment, with those of a plan."""
    base = MINATAR[preset] if env.startswith("MinAtar/") else ELSEWHERE[preset]
    return {**base, **{name.removeprefix(OWN): value for name, value in settings.items() if name.startswith(OWN)}}


def peer_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the settings of a plan. The library checks the rest when a job is tried."""
    for name, value in settings.items():
        if name.startswith(OWN) and (isinstance(value, (str, tuple)) or value != value):
            yield f"{name} must be a number, not {value!r}."
        elif name == f"{OWN}num_envs" and (type(value) is not int or value < 1):
            yield f"{name} must be a whole number greater than 0, not {value!r}."


def shared_config(env: str, seed: int, steps: int, settings: Mapping[str, Any]) -> Config:
    """Return a config of ours whose environment and evaluation the peers share."""
    from gdi.cli.train import parse
    from gdi.presets import DEFAULT_PRESET
    from gdi.sweep.settings import train_words

    own = {name: value for name, value in settings.items() if not name.startswith(OWN)}
    words = [DEFAULT_PRESET, f"--env={env}", f"--steps={steps}", f"--seed={seed}", *train_words(own)]
    config = parse(words, "gdi train").config
    # A peer has its own number of environments.
    return replace(config, env=replace(config.env, num_envs=1))


def peer_config(preset: str, env: str, seed: int, steps: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything that a peer's result depends on, with the names of gdi's config.json where it has them."""
    import json

    from gdi.config import config_to_json

    shared = json.loads(config_to_json(shared_config(env, seed, steps, settings)))
    own = peer_settings(preset, env, settings)
    return {
        "format": shared["format"],
        "preset": preset,
        "scale": "",
        "seed": seed,
        "steps": steps,
        "env": {**shared["env"], "num_envs": own["num_envs"]},
        "learner": {"kind": preset, **{name: value for name, value in own.items() if name != "num_envs"}},
        "evaluation": shared["evaluation"],
    }
