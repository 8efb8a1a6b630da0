"""The peers' settings, with their sources.

They are the same for all five games, and not tuned on the benchmark's seeds.

Both have GDI's torso at this scale: one 3x3 convolution of 16 filters and 128 dense units, both with ReLU (the network
of Young & Tian 2019), then linear heads. Both discount by 0.99, as GDI does here. All other settings are the library's
defaults.

PPO. The basis is the PPO of gymnax-blines for MinAtar (R. Lange, github.com/RobertTLange/gymnax-blines): 64
environments, 8 minibatches, 4 epochs, clip 0.2, GAE 0.95, entropy 0.01, value 0.5, gradient norm 0.5. It was made for
10M steps. For a tenth of them there are two changes. Rollouts have 32 steps instead of 128, so that 1M steps improve
the policy as often as 4M do there. A minibatch has 256 transitions, as in RL Baselines3 Zoo's PPO for Atari. Adam's
rate goes linearly from 1e-3 to 0. In gymnax-blines it is constant at 5e-4, and in the Zoo it is linear. Every sample is
trained 4 times.

DQN. The basis is Young & Tian 2019, "MinAtar", and their examples/dqn.py: replay of the last 100,000 transitions,
learning from 5,000 on, batch 32, target network copied every 1,000 steps, ε from 1 to 0.1 over 100,000 steps, Huber
loss. Two changes come from Obando-Ceron & Castro 2021, "Revisiting Rainbow", in their dqn_*.gin for MinAtar. Adam
(2.5e-4, ε 3.125e-4) replaces centered RMSprop at the same rate, and there is one update per 4 steps instead of one per
step. At batch 32 that trains every sample 8 times, as often as GDI does. The 4 steps are taken in 4 environments.

Evaluation is the same for all agents: every 100k steps, 32 episodes, one in each of 32 separate environments, seeded
by the run's seed and the steps. PPO samples its policy, as in training. DQN is greedy except for ε = 0.001 (the
default of Dopamine). GDI samples its policy under the λ that its controller considers best.
"""

from __future__ import annotations

from typing import Any

from benchmarks.minatar_sweep.agents import EPISODES, env_id, evaluate_every_steps

FILTERS, HIDDEN_UNITS = 16, 128
DQN_EVALUATION_EPSILON = 0.001

PPO: dict[str, Any] = {
    "n_steps": 32,
    "batch_size": 256,
    "n_epochs": 4,
    "learning_rate": 1e-3,  # linear to 0
    "clip_range": 0.2,
    "gamma": 0.99,
    "gae_lambda": 0.95,
    "ent_coef": 0.01,
    "vf_coef": 0.5,
    "max_grad_norm": 0.5,
}
DQN: dict[str, Any] = {
    "buffer_size": 100_000,
    "learning_starts": 5_000,
    "batch_size": 32,
    "train_freq": 1,  # times 4 environments: one update per 4 transitions
    "gradient_steps": 1,
    "target_update_interval": 1_000,
    "learning_rate": 2.5e-4,
    "gamma": 0.99,
    "exploration_initial_eps": 1.0,
    "exploration_final_eps": 0.1,
}
DQN_ADAM_EPSILON = 3.125e-4
DQN_EXPLORATION_STEPS = 100_000
ENVS = {"ppo": 64, "dqn": 4}


def peer_settings(name: str, game: str, seed: int, steps: int) -> dict[str, Any]:
    """Return everything that a peer's result depends on, with the names of gdi's config.json if possible."""
    if name == "ppo":
        own = {**PPO, "learning_rate_end": 0.0}
    else:
        own = {**DQN, "exploration_steps": DQN_EXPLORATION_STEPS, "adam_epsilon": DQN_ADAM_EPSILON}
        own |= {"evaluation_epsilon": DQN_EVALUATION_EPSILON}
    return {
        "agent": name,
        "seed": seed,
        "steps": steps,
        "env": {"id": env_id(game), "num_envs": ENVS[name]},
        "network": {"filters": FILTERS, "hidden_units": HIDDEN_UNITS},
        "learner": own,
        "evaluation": {"every_steps": evaluate_every_steps(steps), "episodes": EPISODES},
    }
