"""Scales set only the sizes of a run. A preset defines the numbers that it tunes per scale."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gdi.config import Config, EnvConfig, EvaluationConfig, NetworkConfig, RunConfig
from gdi.envs.names import is_atari


@dataclass(frozen=True)
class Scale:
    """The sizes of a run: budget, environments, network, and how often it logs, saves and evaluates."""

    summary: str
    steps: int
    num_envs: int
    network: NetworkConfig
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    run: RunConfig = field(default_factory=RunConfig)

    def apply(self, config: Config) -> Config:
        """Return the config with these sizes."""
        return replace(
            config,
            steps=self.steps,
            env=replace(config.env, num_envs=self.num_envs),
            network=self.network,
            evaluation=self.evaluation,
            run=self.run,
        )


SCALES = {
    "paper": Scale(
        "the paper's tables: 200M frames; gdi-i3 has 160 environments, IMPALA-deep and LSTM 256; wants a GPU",
        steps=Config().steps,
        num_envs=EnvConfig().num_envs,
        network=NetworkConfig(),
        run=RunConfig(overlap=True),  # the paper's actors and learner run on different machines
    ),
    "atari-cpu": Scale(
        "Atari on a few CPU cores: 4M steps; gdi-i3 has 32 environments, IMPALA-shallow and LSTM 256",
        steps=4_000_000,
        num_envs=32,
        network=NetworkConfig(torso="impala-shallow", hidden_units=256, lstm_units=256),
        evaluation=EvaluationConfig(every_steps=500_000),
        run=RunConfig(log_every_steps=10_000, checkpoint_every_steps=100_000),
    ),
    "minatar": Scale(
        "10x10 games on a laptop CPU: small convolution, 1M steps",
        steps=1_000_000,
        num_envs=64,
        network=NetworkConfig(torso="auto", hidden_units=128, lstm_units=0),
        evaluation=EvaluationConfig(every_steps=100_000),
        run=RunConfig(log_every_steps=10_000, checkpoint_every_steps=100_000, threads=2),
    ),
    "classic": Scale(
        "vector observations on a laptop CPU: small dense network, 50k to 500k steps, by preset",
        steps=200_000,
        num_envs=32,
        network=NetworkConfig(torso="auto", hidden_units=64, lstm_units=0),
        evaluation=EvaluationConfig(every_steps=25_000),
        run=RunConfig(log_every_steps=2_500, checkpoint_every_steps=25_000, threads=2),
    ),
}


def default_scale(env_id: str) -> str:
    """Return the scale that fits the environment and this machine; ``paper`` is for Atari with a GPU."""
    if env_id.startswith("MinAtar/"):
        return "minatar"
    if is_atari(env_id):
        import torch  # imported here, because commands without torch also read presets

        return "paper" if torch.cuda.is_available() else "atari-cpu"
    return "classic"
