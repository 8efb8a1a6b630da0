"""The actor: N environments, one λ per episode in each, and everything recorded as it was acted (alg:i3, ACTOR)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from gdi import policy
from gdi.acting.parameters import Parameters
from gdi.clock import Clock
from gdi.config import LearnerConfig
from gdi.envs.base import VectorEnv
from gdi.networks import AgentInput, AgentNetwork, FrameHistory
from gdi.networks.frames import stack_indices
from gdi.types import Array, EpisodeEnd, Index, Sequence, State

CPU = torch.device("cpu")

# Gives these environments the λ of their next episodes.
Propose = Callable[[list[int]], list[Index]]


def _empty_window(length: int, env: VectorEnv, state: Array) -> Sequence:
    """A window of ``length`` steps for all environments, zeros: what is never written is no transition."""
    n, spec = env.num_envs, env.spec
    return Sequence(
        obs=np.zeros((spec.frame_stack - 1 + length + 1, n, *spec.frame_shape), spec.observation_dtype),
        episode_start=np.zeros((length + 1, n), bool),
        previous_action=np.zeros((length + 1, n), np.int64),
        previous_reward=np.zeros((length + 1, n), np.float32),
        action=np.zeros((length, n), np.int64),
        reward=np.zeros((length, n), np.float32),
        terminated=np.zeros((length, n), bool),
        truncated=np.zeros((length, n), bool),
        valid=np.zeros((length, n), bool),
        behavior_prob=np.ones((length, n), np.float32),
        index=np.zeros((length, n, 3), np.float32),
        version=np.zeros((length, n), np.int64),
        state=state,
    )


class Actor:
    """Plays N environments with a copy of θ, and cuts their streams into windows.

    A window holds ``burn_in_steps`` steps that the previous window trained and ``sequence_steps`` new ones; trained
    steps of successive windows never overlap. The first window has nothing to burn in: its burn-in steps are zeros,
    harmless because the state is reset at the first real step.
    """

    def __init__(
        self,
        env: VectorEnv,
        network: AgentNetwork,
        parameters: Parameters,
        config: LearnerConfig,
        generator: torch.Generator,
        clock: Clock,
        env_seed: int,
        device: torch.device = CPU,
    ) -> None:
        self._env = env
        spec = env.spec
        self._context = spec.frame_stack - 1
        self._history = FrameHistory(env.num_envs, spec.frame_shape, spec.observation_dtype, spec.frame_stack)
        self._network = network.to(device).eval()
        self._device = device
        self._parameters = parameters
        self._burn_in, self.trained_steps = config.burn_in_steps, config.sequence_steps
        self._pull_every_steps = config.pull_every_steps
        self._generator = generator
        self._clock = clock
        self._env_seed = env_seed
        self._acted_steps = 0
        self._version: int | None = None
        self._last_window: Sequence | None = None
        self._cut = False  # the budget ended the last window before its last step
        self._state_history: Array = np.zeros(0)
        self._begin(env.reset(env_seed))

    def _begin(self, obs: Array) -> None:
        """All environments are at the first step of an episode whose λ is not chosen yet."""
        n = self._env.num_envs
        self._obs = obs
        self._episode_start = np.ones(n, bool)
        self._resets = np.zeros(n, bool)  # the coming step is a reset, no transition
        self._needs_index = np.ones(n, bool)
        self._previous_action = np.zeros(n, np.int64)
        self._previous_reward = np.zeros(n, np.float32)
        self._index = np.zeros((n, 3), np.float32)
        self._return = np.zeros(n, np.float64)
        self._length_steps = np.zeros(n, np.int64)
        self._state = self._network.initial_state(n).to(self._device)

    def _begin_anew(self) -> None:
        """Drop the episodes under way, and begin others from a seed that no environment had before."""
        entropy = [self._env_seed, self._acted_steps]
        self._env_seed = int(np.random.SeedSequence(entropy).generate_state(1)[0])
        self._last_window = None
        self._begin(self._env.reset(self._env_seed))

    def collect(self, propose: Propose, max_transitions: int) -> tuple[Sequence, list[EpisodeEnd]]:
        """Sample one window under P_Λ (``propose`` draws from it) and at most ``max_transitions``.

        Returns the window and the episodes that ended in it. A budget that runs out mid-window leaves the rest of the
        window empty, so a run ends on exactly the transitions it was asked for.
        """
        first, length = self._burn_in, self._burn_in + self.trained_steps
        if self._cut and self._burn_in:
            self._begin_anew()  # there is nothing to burn in: the steps after the cut were never played
        window = _empty_window(length, self._env, self._network.initial_state(self._env.num_envs).numpy())
        states = np.zeros((length, *window.state.shape), np.float32)
        self._copy_burn_in(window, states)
        ended: list[EpisodeEnd] = []
        left = max_transitions
        self._cut = False
        for t in range(first, length):
            if left <= 0:
                self._cut = True
                break
            left -= self._step(window, states, t, propose, left, ended)
        window.state[:] = states[0]
        self._last_window, self._state_history = window, states
        return window, ended

    def _copy_burn_in(self, window: Sequence, states: Array) -> None:
        if not self._burn_in or self._last_window is None:
            return
        last, source, kept = self._last_window, self.trained_steps, slice(0, self._burn_in)
        for name, array in window.arrays().items():
            if name not in ("state", "obs"):
                array[kept] = getattr(last, name)[source : source + self._burn_in]
        if self._context:
            stack = stack_indices(torch.from_numpy(last.episode_start), self._context + 1)[source].numpy()  # [N, S]
            window.obs[: self._context] = last.obs[stack[:, :-1].T, np.arange(self._env.num_envs)]
        begin = self._context + source
        window.obs[self._context : self._context + self._burn_in] = last.obs[begin : begin + self._burn_in]
        states[kept] = self._state_history[source : source + self._burn_in]

    def _step(
        self,
        window: Sequence,
        states: Array,
        t: int,
        propose: Propose,
        left: int,
        ended: list[EpisodeEnd],
    ) -> int:
        """One step of all environments, written at time t; returns how many transitions it was."""
        if self._acted_steps % self._pull_every_steps == 0:
            self._pull()
        self._acted_steps += 1
        if self._needs_index.any():
            self._index[self._needs_index] = propose(np.flatnonzero(self._needs_index).tolist())
            self._needs_index[:] = False

        with self._clock.measure("inference"):
            states[t] = self._state.cpu().numpy()
            action, behavior_prob = self._act()
        if t == 0 and self._context:
            window.obs[: self._context] = self._history.context
        with self._clock.measure("environment"):
            step = self._env.step(action)

        valid = ~self._resets
        if valid.sum() > left:  # the budget ends inside this step: the first ``left`` of its transitions count
            valid &= valid.cumsum() <= left
        now = self._context + t
        window.obs[now], window.obs[now + 1] = self._obs, step.obs
        window.episode_start[t] = self._episode_start
        window.episode_start[t + 1] = self._resets
        window.previous_action[t], window.previous_action[t + 1] = self._previous_action, action
        window.previous_reward[t], window.previous_reward[t + 1] = self._previous_reward, step.reward
        window.action[t], window.reward[t] = action, step.reward
        window.terminated[t], window.truncated[t] = step.terminated, step.truncated
        window.valid[t], window.behavior_prob[t] = valid, behavior_prob
        window.index[t], window.version[t] = self._index, self._version

        self._return += step.reward
        self._length_steps += ~self._resets
        done = step.terminated | step.truncated
        for i in np.flatnonzero(done & valid):
            index = Index(*self._index[i].tolist())
            ended.append(
                EpisodeEnd(int(i), index, float(self._return[i]), int(self._length_steps[i]), bool(step.truncated[i]))
            )
        self._return[done] = 0.0
        self._length_steps[done] = 0
        self._needs_index = done.copy()
        self._obs, self._episode_start, self._resets = step.obs, self._resets, done
        self._previous_action, self._previous_reward = action, step.reward
        return int(valid.sum())

    def _act(self) -> tuple[Array, Array]:
        """a ~ π_{θ_λ}(·|s) and μ(a|s), each [N]; advances the recurrent state."""
        observation = self._history.observe(self._obs, self._episode_start)
        with torch.inference_mode():
            seen = (observation, self._episode_start, self._previous_action, self._previous_reward)
            inputs = AgentInput(*(torch.from_numpy(x).unsqueeze(0).to(self._device) for x in seen))
            output = self._network(inputs, self._state)
            self._state = output.state
            # The policy is a few numbers per environment: drawn on the CPU, from the run's own generator.
            probabilities = policy.probs(output.advantage[0].cpu(), torch.from_numpy(self._index))
            action = policy.sample(probabilities, self._generator)
            taken = probabilities.gather(1, action.unsqueeze(1)).squeeze(1)
        return action.numpy(), taken.numpy()

    def _pull(self) -> None:
        pulled = self._parameters.pull(self._version)
        if pulled is not None:
            params, self._version = pulled
            self._network.load_state_dict(params)

    def state_dict(self) -> State:
        """All of the stream where the environment can be saved; otherwise only the generator and counters."""
        common: State = {
            "generator": self._generator.get_state(),
            "acted_steps": self._acted_steps,
            "version": self._version,
            "network": dict(self._network.state_dict()),
            "env_seed": self._env_seed,
        }
        env = self._env.state_dict()
        if env is None:
            return {"common": common}
        stream = {
            "episode_start": self._episode_start,
            "resets": self._resets,
            "needs_index": self._needs_index,
            "previous_action": self._previous_action,
            "previous_reward": self._previous_reward,
            "index": self._index,
            "return": self._return,
            "length_steps": self._length_steps,
            "state": self._state,
            "cut": self._cut,
        }
        if self._context:
            stream["frames"] = self._history.frames
        last = self._last_window
        if self._burn_in and last is not None:
            stream |= {"last_window": last.arrays(), "state_history": self._state_history}
        return {"common": common, "env": env, "stream": stream}

    def load_state_dict(self, state: State) -> None:
        """Continue the stream, or, where the environment could not be saved, begin new episodes from a derived seed.

        The interrupted episodes are then dropped; the windows before the break stay whole, and nothing crosses it.
        """
        common = state["common"]
        self._generator.set_state(torch.as_tensor(common["generator"]))
        self._acted_steps = int(common["acted_steps"])
        self._version = None if common["version"] is None else int(common["version"])
        self._network.load_state_dict({name: torch.as_tensor(value) for name, value in common["network"].items()})
        if "env" not in state:
            self._env_seed = int(common["env_seed"])
            self._begin_anew()
            return
        self._obs = self._env.load_state_dict(state["env"])
        stream = state["stream"]
        self._episode_start = np.array(stream["episode_start"])
        self._resets = np.array(stream["resets"])
        self._needs_index = np.array(stream["needs_index"])
        self._previous_action = np.array(stream["previous_action"])
        self._previous_reward = np.array(stream["previous_reward"])
        self._index = np.array(stream["index"])
        self._return = np.array(stream["return"])
        self._length_steps = np.array(stream["length_steps"])
        self._state = torch.as_tensor(stream["state"]).to(self._device)
        self._cut = bool(stream.get("cut", False))  # a checkpoint of before has none
        if self._context:
            self._history.frames[:] = stream["frames"]
        if "last_window" in stream:
            self._last_window = Sequence(**stream["last_window"])
            self._state_history = np.array(stream["state_history"])

    def close(self) -> None:
        self._env.close()
