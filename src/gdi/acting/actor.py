"""The actor: it plays N environments with one λ per episode, and records every step (alg:i3, ACTOR)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from gdi.acting.parameters import Parameters
from gdi.acting.player import Acted, Observed, Player
from gdi.acting.states import StatePicker
from gdi.acting.stream import Stream, first_steps
from gdi.acting.windows import copy_burn_in, empty_window, write_notes
from gdi.clock import Clock
from gdi.config import DataConfig
from gdi.envs.base import StepResult, VectorEnv, replaced
from gdi.envs.journal import Journal
from gdi.errors import Fault
from gdi.networks import copy_parameters
from gdi.types import Array, EpisodeEnd, Index, SeenStates, State, Window, window_from

# Draws the λ of the next episode for each of the given environments.
Propose = Callable[[list[int]], list[Index]]
Params = dict[str, torch.Tensor]


class Mark(NamedTuple):
    """The state of an actor at the start of a window, to which it can return."""

    env_step: int
    counters: State
    stream: State
    params: Params | None
    last_window: Window | None
    state_history: Array


class Actor:
    """A player of N environments with a copy of the parameters (θ), which splits the steps into windows.

    A window holds ``burn_in_steps`` steps that the previous window trained and ``sequence_steps`` new ones. Trained
    steps of successive windows never overlap. The burn-in steps of the first window are zeros. They do no harm, because
    the recurrent state is reset at the first real step.
    """

    def __init__(
        self,
        env: VectorEnv,
        player: Player,
        parameters: Parameters,
        config: DataConfig,
        num_components: int,
        *,
        generator: torch.Generator,
        env_seed: int,
        clock: Clock,
        redraws: bool = False,
        picker: StatePicker | None = None,
    ) -> None:
        """``num_components`` is the number of components of λ. With ``redraws``, λ is also drawn for every window.

        ``picker`` chooses states for pictures.
        """
        self._env = Journal(env)
        self._player = player
        self._parameters = parameters
        self._config = config
        self._num_components = num_components
        self._generator = generator
        self._env_seed = env_seed
        self._clock = clock
        self._redraws = redraws
        self._picker = picker
        self._context = env.spec.frame_stack - 1
        self._has_beside = env.spec.has_mask or env.spec.vector_width > 0
        self.acted_steps = 0  # of each environment, resets included
        self._version: int | None = None
        self._params: Params | None = None  # the pulled ones
        self._last_window: Window | None = None
        self._budget_exhausted = False  # the budget ended the last window before its last step
        self._state_history: Array = np.zeros(0)
        self._faults: list[Fault] = []  # of copies that were replaced, since the last ``take_faults``
        self._reset_stream(self._env.reset(env_seed))

    def _reset_stream(self, obs: Array) -> None:
        self._obs, self._beside = obs, self._env.beside
        self._stream = first_steps(self._env.num_envs, self._num_components)
        self._player.begin()

    def _restart_episodes(self) -> None:
        """Abandon the current episodes and start new ones from a seed that was not used before."""
        entropy = [self._env_seed, self.acted_steps]
        self._env_seed = int(np.random.SeedSequence(entropy).generate_state(1)[0])
        self._last_window = None
        self._reset_stream(self._env.reset(self._env_seed))

    def collect(self, propose: Propose, max_transitions: int) -> tuple[Window, int, list[EpisodeEnd]]:
        """Play one window of at most ``max_transitions``, where ``propose`` draws λ from P_Λ.

        Return the window, the number of its new transitions, and the episodes that ended in it. If the budget runs out
        inside the window, the rest of the window stays empty. A run therefore ends on exactly the requested number of
        transitions.
        """
        first, length = self._config.burn_in_steps, self._config.window_steps
        if self._budget_exhausted and first:
            self._restart_episodes()  # the last steps of the last window are empty, so there is nothing to burn in
        state = self._player.network.initial_state(self._env.num_envs).numpy()
        window = empty_window(length, self._env, self._num_components, state)
        states = np.zeros((length, *state.shape), np.float32)
        if first and self._last_window is not None:
            copy_burn_in(window, states, self._last_window, self._state_history, self._config)
        if self._picker is not None:
            self._picker.begin(self.acted_steps, length, self._env.num_envs)
        if self._redraws:
            self._stream.index[:] = propose(list(range(self._env.num_envs)))
            self._stream.needs_index[:] = False
        episodes: list[EpisodeEnd] = []
        left = max_transitions
        end = length
        self._budget_exhausted = False
        for t in range(first, length):
            if left <= 0:
                self._budget_exhausted = True
                end = t
                break
            left -= self._step(window, states, t, propose, left)
            episodes += self._end_episodes(window, t)
        if end < length and window.action_mask.shape[-1]:
            # This step is not acted, but it holds only valid actions.
            window.action[end] = window.action_mask[end].argmax(-1)
        if window.extras:
            self._annotate(window, end)
        window.state[:] = states[0]
        self._last_window, self._state_history = window, states
        return window, max_transitions - left, episodes

    def _step(self, window: Window, states: Array, t: int, propose: Propose, left: int) -> int:
        """Play one step of all environments and write it at time t. Return its number of transitions."""
        stream = self._stream
        if self.acted_steps % self._config.pull_every_steps == 0:
            self._pull()
        self.acted_steps += 1
        drawn = self._draw(propose)
        with self._clock.measure("inference"):
            states[t] = self._player.state.cpu().numpy()
            acted = self._act()
        if t == 0 and self._context:
            window.obs[: self._context] = self._player.history.context
        with self._clock.measure("environment"):
            step = self._env.step(acted.action)
        if faults := self._env.faults:
            self._faults += faults
            self._drop_episodes(window, t, replaced(faults))
        valid = ~stream.resets
        count = int(np.count_nonzero(valid))
        if count > left:  # the budget ends inside this step, so only its first ``left`` transitions count
            valid &= valid.cumsum() <= left
            count = left
        if self._picker is not None:
            self._picker.look(t, valid, self._obs, stream.index, self._player.value, self._episode_names)
        self._write(window, t, acted, step, valid)
        stream.index[stream.resets] = drawn[stream.resets]  # the next observation is the new episode's first
        window.index[t + 1] = stream.index
        stream.episode_return += step.reward
        stream.length_steps += ~stream.resets
        done = step.terminated | step.truncated
        self._obs, self._beside = step.obs, self._env.beside
        stream.episode_start, stream.resets = stream.resets, done
        stream.needs_index |= done
        stream.previous_action, stream.previous_reward = acted.action, step.reward
        return count

    def _drop_episodes(self, window: Window, t: int, copies: list[int]) -> None:
        """Drop the episodes of copies that were replaced at time t.

        What they played before is trained, as if a time limit had ended it. The step that failed is a reset step.
        """
        stream = self._stream
        if t > 0:
            window.truncated[t - 1, copies] |= window.valid[t - 1, copies] & ~window.terminated[t - 1, copies]
        stream.resets[copies] = True
        stream.needs_index[copies] = True
        stream.episode_return[copies] = 0.0
        stream.length_steps[copies] = 0

    def take_faults(self) -> tuple[Fault, ...]:
        """Return the faults since the last call."""
        faults, self._faults = tuple(self._faults), []
        return faults

    def _draw(self, propose: Propose) -> Array:
        """Draw λ where an environment needs one for its next episode, [N, components].

        It takes effect when that episode starts.
        """
        stream = self._stream
        drawn = stream.index.copy()
        if stream.needs_index.any():
            drawn[stream.needs_index] = propose(np.flatnonzero(stream.needs_index).tolist())
            stream.needs_index[:] = False
            stream.index[stream.episode_start] = drawn[stream.episode_start]
        return drawn

    def _act(self) -> Acted:
        return self._player.act(self._observed(), self._generator)

    def _observed(self) -> Observed:
        stream = self._stream
        return Observed(
            self._obs,
            stream.episode_start,
            stream.previous_action,
            stream.previous_reward,
            stream.index,
            *self._beside,
        )

    def _episode_names(self) -> Array:
        """Return a name of each environment's episode that no other episode of the run has, [N, 3]."""
        first = self.acted_steps - self._stream.length_steps
        return np.stack([np.full_like(first, self._env_seed), first, np.arange(len(first))], -1)

    def picked_states(self) -> SeenStates | None:
        """Return the states that were picked from the latest window, if any."""
        return None if self._picker is None else self._picker.states()

    def _annotate(self, window: Window, end: int) -> None:
        """Note the row after the last acted one, and let the algorithm make its extras of all notes."""
        write_notes(window, end, self._player.peek(self._observed()))
        extras = self._player.annotate(window)
        window.extras.clear()
        window.extras.update(extras)

    def _write(self, window: Window, t: int, acted: Acted, step: StepResult, valid: Array) -> None:
        stream, now = self._stream, self._context + t
        window.obs[now], window.obs[now + 1] = self._obs, step.obs
        window.episode_start[t], window.episode_start[t + 1] = stream.episode_start, stream.resets
        window.previous_action[t], window.previous_action[t + 1] = stream.previous_action, acted.action
        window.previous_reward[t], window.previous_reward[t + 1] = stream.previous_reward, step.reward
        window.index[t] = stream.index
        window.action[t], window.reward[t] = acted.action, step.reward
        window.terminated[t], window.truncated[t] = step.terminated, step.truncated
        window.valid[t], window.behavior_prob[t] = valid, acted.prob
        window.version[t] = self._version
        if self._has_beside:
            window.vector[t], window.vector[t + 1] = self._beside.vector, self._env.beside.vector
            window.action_mask[t], window.action_mask[t + 1] = self._beside.action_mask, self._env.beside.action_mask
        write_notes(window, t, acted.notes)

    def _end_episodes(self, window: Window, t: int) -> list[EpisodeEnd]:
        """Return the episodes that ended with step t inside the budget, and reset the counters of ended ones."""
        stream, done = self._stream, self._stream.resets
        ended = [
            EpisodeEnd(
                env=int(i),
                index=tuple(stream.index[i].tolist()),
                episode_return=float(stream.episode_return[i]),
                length_steps=int(stream.length_steps[i]),
                truncated=bool(window.truncated[t, i]),
            )
            for i in np.flatnonzero(done & window.valid[t])
        ]
        stream.episode_return[done] = 0.0
        stream.length_steps[done] = 0
        if self._picker is not None and ended:
            self._picker.end(self._env_seed, self.acted_steps + 1, ended)
        return ended

    def _pull(self) -> None:
        pulled = self._parameters.pull(self._version)
        if pulled is not None:
            self._params, self._version = pulled
            copy_parameters(self._player.theta, self._params)

    def state_dict(self) -> State:
        """Return the whole state of the stream if the environment can be saved.

        Otherwise return only the generator, the counters, the parameters and the environment seed.
        """
        common = {**self._counters(), "network": dict(self._player.network.state_dict())}
        env = self._env.state_dict()
        if env is None:
            return {"common": common}
        stream = self._stream_state()
        last = self._last_window
        if self._config.burn_in_steps and last is not None:
            stream |= {"last_window": last.arrays(), "state_history": self._state_history}
        return {"common": common, "env": env, "stream": stream}

    def _counters(self) -> State:
        return {
            "generator": self._generator.get_state(),
            "acted_steps": self.acted_steps,
            "version": self._version,
            "env_seed": self._env_seed,
        }

    def _stream_state(self) -> State:
        stream = {**self._stream.state_dict(), "state": self._player.state, "cut": self._budget_exhausted}
        return {**stream, "frames": self._player.history.frames} if self._context else stream

    def mark(self) -> Mark | None:
        """Return the state at the start of a window for ``rewind``, or None if the environment cannot be saved."""
        step = self._env.mark()
        if step is None:
            return None
        arrays = {name: np.copy(value) for name, value in self._stream_state().items() if isinstance(value, np.ndarray)}
        stream = {**self._stream_state(), **arrays}  # arrays are written in place, and all else is replaced
        return Mark(step, self._counters(), stream, self._params, self._last_window, self._state_history)

    def rewind(self, mark: Mark) -> None:
        """Take back everything since the mark. If the environment cannot be restored, a resumed run resets it."""
        obs = self._env.rewind(mark.env_step)
        if obs is None:
            return
        self._load_counters(mark.counters)
        if mark.params is not None:
            self._player.network.load_state_dict(mark.params)
        self._params = mark.params
        self._last_window, self._state_history = mark.last_window, mark.state_history
        self._load_stream(obs, mark.stream)
        self._faults.clear()

    def load_state_dict(self, state: State) -> None:
        """Continue the stream, or start new episodes if the environment could not be saved.

        New episodes start from a derived seed, and the interrupted ones are dropped. Earlier windows stay complete, and
        no window spans the interruption.
        """
        common = state["common"]
        self._load_counters(common)
        self._params = {name: torch.as_tensor(value) for name, value in common["network"].items()}
        self._player.network.load_state_dict(self._params)
        if "env" not in state:
            self._restart_episodes()
            return
        stream = state["stream"]
        self._load_stream(self._env.load_state_dict(state["env"]), stream)
        if "last_window" in stream:
            self._last_window = window_from(stream["last_window"])
            self._state_history = np.array(stream["state_history"])

    def _load_counters(self, counters: State) -> None:
        self._generator.set_state(torch.as_tensor(counters["generator"]))
        self.acted_steps = int(counters["acted_steps"])
        self._version = None if counters["version"] is None else int(counters["version"])
        self._env_seed = int(counters["env_seed"])

    def _load_stream(self, obs: Array, stream: State) -> None:
        self._obs, self._beside = obs, self._env.beside
        self._stream = Stream.from_state(stream)
        self._player.load_state(torch.as_tensor(stream["state"]))
        self._budget_exhausted = bool(stream["cut"])
        if self._context:
            self._player.history.frames[:] = stream["frames"]

    def close(self) -> None:
        self._env.close()
