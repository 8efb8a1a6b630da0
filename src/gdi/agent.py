"""The playing agent: a trained network and its controller."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gdi.acting.player import Observed
from gdi.config import Config
from gdi.controller import make_controller
from gdi.envs import make_env
from gdi.envs.base import Beside, nothing_beside
from gdi.envs.screen import make_screen
from gdi.errors import UserError
from gdi.evaluation import Evaluation, Evaluator
from gdi.evaluation.evaluator import num_envs_for
from gdi.evaluation.strip import Component, Outlook, Strip
from gdi.evaluation.video import RecordedEpisode, check_path, record
from gdi.index_space import make_index_space
from gdi.runtime.factories import make_player
from gdi.runtime.folder import CONFIG
from gdi.runtime.tree import controller_state
from gdi.seeds import child_seed
from gdi.types import Array, Index

CPU = torch.device("cpu")


class Agent:
    """A trained agent. Call ``reset()`` before each episode, then ``act(observation)`` at each step.

    The agent stacks frames itself. An observation is what one step of the environment returns, which for Atari is a
    gray [84, 84] frame.
    """

    def __init__(self, config: Config, state: dict[str, Any], seed: int = 0) -> None:
        env = make_env(config.env, 1)
        self.spec = env.spec
        env.close()
        # Playing takes too little time to make up for a compilation.
        self.config = replace(config, run=replace(config.run, compile=False))
        self.space = make_index_space(config.index_space)
        system = state["system"]
        self.steps = int(system["steps"])
        self._params = {k: torch.as_tensor(v) for k, v in system["learner"]["network"].items()}
        self._player = make_player(self.config, self.spec, 1, CPU, greedy=config.evaluation.greedy)
        try:
            self._player.network.load_state_dict(self._params)
        except RuntimeError:
            raise UserError(
                f"the checkpoint's network is not the one that {CONFIG} describes: was {CONFIG} changed after training?"
            ) from None
        self._controller = make_controller(self.config, len(system["controllers"]))
        self._controller.load_state_dict(controller_state(system["controllers"], self._controller.slots))
        self._rng = np.random.default_rng(child_seed(seed, "agent-index"))
        self._generator = torch.Generator().manual_seed(child_seed(seed, "agent-actions"))
        self.reset()

    def reset(self) -> None:
        """Start an episode with a new λ from the controller and an empty memory."""
        slot = int(self._rng.integers(self._controller.slots))
        best = self._controller.propose_best(slot, self._rng)
        self.index: Index = self.config.evaluation.index or best
        self._player.begin()
        self._start = True
        self._action = 0
        self._steps = 0

    def act(self, observation: Any, reward: float = 0.0, *, action_mask: Any = None) -> Any:
        """Return the environment's own action for one of its observations.

        Pass the previous reward to a recurrent agent, because it received that reward in training. If the environment
        tells in ``info`` which actions are valid, pass ``info["action_mask"]``.
        """
        reader = self.spec.reader
        if reader is None:
            return self._checked_choice(self._plain(observation), nothing_beside(1), reward)
        try:
            obs, beside = reader.observe(observation, action_mask)
            return reader.action(self._checked_choice(self._plain(obs[0]), beside, reward))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise UserError(
                f"this is no observation of {self.config.env.id} ({type(error).__name__}: {error}): pass what its "
                "reset and step return."
            ) from None

    def _plain(self, observation: Any) -> Array:
        """Return an observation that needs no conversion as a batch of one."""
        shape = self.spec.frame_shape
        if np.size(observation) != math.prod(shape):
            raise UserError(
                f"an observation must have the shape {shape}, not {np.shape(observation)}: pass one observation of "
                f"{self.config.env.id}."
            )
        return np.asarray(observation, self.spec.observation_dtype).reshape(1, *shape)

    def _checked_choice(self, obs: Array, beside: Beside, reward: float) -> int:
        """Choose an action for numbers that a caller passed, which must be finite."""
        if not (np.isfinite(obs).all() and np.isfinite(beside.vector).all() and math.isfinite(reward)):
            raise UserError(
                f"the observation or reward is NaN or infinite: pass what {self.config.env.id} returns, and fix the "
                "environment if it returns that."
            )
        return self.choose(obs, beside, reward)

    def choose(self, obs: Array, beside: Beside, reward: float = 0.0) -> int:
        """Return the number of the action for a converted observation, each array [1, ...]."""
        observed = Observed(
            obs,
            episode_start=np.array([self._start]),
            previous_action=np.array([self._action]),
            previous_reward=np.array([reward], np.float32),
            index=np.array([self.index], np.float32),
            vector=beside.vector,
            action_mask=beside.action_mask,
        )
        self._action, self._start = int(self._player.act(observed, self._generator).action[0]), False
        self._steps += 1
        return self._action

    def evaluate(
        self, episodes: int = 32, seed: int = 0, index: Index | None = None, greedy: bool | None = None
    ) -> Evaluation:
        """Play whole episodes in separate environments.

        ``index`` is the λ of every episode, and ``greedy`` plays the most probable actions. By default both are as in
        the run's own evaluations.
        """
        check_episodes(episodes)
        settings = self.config.evaluation
        index = settings.index if index is None else self.space.check(index)
        greedy = settings.greedy if greedy is None else greedy
        num_envs = num_envs_for(episodes)
        player = make_player(self.config, self.spec, num_envs, CPU, greedy=greedy)
        env = make_env(self.config.env, num_envs)
        evaluator = Evaluator(self.config.env, env, player, index)
        try:
            propose = self._controller.propose_best
            evaluation = evaluator.evaluate(self._params, propose, episodes, child_seed(seed, "evaluate"))
            assert evaluation is not None  # None means a stop, which this call cannot request
            return evaluation
        finally:
            evaluator.close()

    @property
    def named_index(self) -> dict[str, float]:
        """The index (λ) of the episode by the names of its components."""
        return self.space.by_name(self.index)

    def caption(self) -> str:
        """Return the index (λ) of the episode as text for a video."""
        return self.space.text(self.index)

    def check_recording(self, path: str | Path) -> None:
        """Raise UserError if ``record`` cannot succeed with this path. Nothing is played."""
        check_path(Path(path))
        make_screen(self.config.env, 0).close()

    def outlook(self) -> Outlook:
        """Return λ in the controller's distributions, and the entropy and value of the latest step."""
        components = []
        probability = {belief.axis: belief.probability.tolist() for belief in self._controller.belief()}
        axes = {axis.name: axis for axis in self.space.axes}
        for name, value in self.named_index.items():
            axis = axes.get(name)
            at = (axis.to_coordinate(value) - axis.low) / (axis.high - axis.low) if axis else 0.0
            ends = (axis.to_value(axis.low), axis.to_value(axis.high)) if axis else (0.0, 0.0)
            components.append(Component(self.space.label_of(name), value, at, ends, probability.get(name, ())))
        acted = self._steps > 0
        return Outlook(
            step=self._steps,
            components=tuple(components),
            entropy=float(self._player.entropy()[0]) if acted else math.nan,
            highest_entropy=math.log(self.spec.num_actions),
            value=float(self._player.value()[0]) if acted else math.nan,
        )

    def record(
        self, path: str | Path, episodes: int = 1, seed: int = 0, *, strip: bool = False
    ) -> list[RecordedEpisode]:
        """Play episodes and record every frame in color in a new mp4 file, with score, step and λ.

        ``strip`` adds the controller's distributions, entropy and value below each frame.
        """
        check_episodes(episodes)
        check_path(Path(path))
        screen = make_screen(self.config.env, child_seed(seed, "video"))
        try:
            return record(Path(path), screen, self, episodes, Strip(self.outlook) if strip else None)
        finally:
            screen.close()


def check_episodes(episodes: int) -> None:
    """Raise UserError unless there is at least one episode to play."""
    if episodes < 1:
        raise UserError(f"episodes must be 1 or more, not {episodes}: there is nothing to play otherwise.")
