"""Frame stacking against a loop per time and column, and the acting side against the learning side by arithmetic."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gdi import policy
from gdi.acting.actor import Actor
from gdi.config import Config
from gdi.envs.base import EnvSpec, StepResult, nothing_beside
from gdi.networks import AgentNetwork, Seen
from gdi.networks.frames import FrameHistory, stack_frames, stack_indices
from gdi.types import Array, State, Window
from helpers import collect_windows, make_actor, seen_of, tiny_config, with_lstm

# Part 1: the functions against a literal reading of the module's docstring


def shown_time(episode_start: Array, t: int, b: int, back: int) -> int:
    """The time that stands ``back`` places before the newest: step back one by one, but not out of the episode.

    Times below 0 are the frames in front of the window; no flags are stored for them, the rule has been applied there.
    """
    time = t
    for _ in range(back):
        if time >= 0 and episode_start[time, b]:
            break
        time -= 1
    return time


def numbered_frames(count: int, columns: int) -> Array:
    """[count, B, 2, 3] frames, every pixel of every frame with a value of its own."""
    return np.arange(count * columns * 6, dtype=np.int32).reshape(count, columns, 2, 3)


@st.composite
def flags(draw: st.DrawFn) -> Array:
    """[T, B] episode starts, from none to all."""
    length, columns = draw(st.integers(1, 9)), draw(st.integers(1, 3))
    values = draw(st.lists(st.booleans(), min_size=length * columns, max_size=length * columns))
    return np.array(values, bool).reshape(length, columns)


@settings(max_examples=150, deadline=None)
@given(flags(), st.integers(1, 5))
def test_stacks_are_those_of_a_loop(episode_start: Array, frame_stack: int) -> None:
    length, columns = episode_start.shape
    context = frame_stack - 1
    frames = numbered_frames(context + length, columns)
    stacks = stack_frames(torch.from_numpy(frames), torch.from_numpy(episode_start), frame_stack)
    indices = stack_indices(torch.from_numpy(episode_start), frame_stack)
    assert indices.shape == (length, columns, frame_stack)
    if frame_stack == 1:
        np.testing.assert_array_equal(stacks, frames)  # a frame is the observation, without a channel axis
    else:
        assert stacks.shape == (length, columns, 2, 3, frame_stack)
    for t in range(length):
        for b in range(columns):
            for place in range(frame_stack):
                stored = shown_time(episode_start, t, b, context - place) + context
                assert indices[t, b, place] == stored
                if frame_stack > 1:
                    np.testing.assert_array_equal(stacks[t, b, ..., place], frames[stored, b])


def test_a_written_out_stack() -> None:
    """S = 4, one column, a start at time 2. Stored: times -3 ... 4 as frames 0 ... 7, so time t is frame t + 3."""
    episode_start = torch.tensor([[False], [False], [True], [False], [False]])
    assert stack_indices(episode_start, 4)[:, 0].tolist() == [
        [0, 1, 2, 3],  # time 0: nothing says that an episode began, so the frames in front of the window
        [1, 2, 3, 4],
        [5, 5, 5, 5],  # time 2, the first of its episode: itself, four times
        [5, 5, 5, 6],
        [5, 5, 6, 7],
    ]


def test_whole_frames_lie_together_in_memory() -> None:
    """[T, B, S, H, W] with the stack's axis moved by a view, as the docstring says."""
    stacks = stack_frames(torch.from_numpy(numbered_frames(3 + 5, 2)), torch.zeros(5, 2, dtype=torch.bool), 4)
    assert stacks.movedim(-1, 2).is_contiguous()


@settings(max_examples=100, deadline=None)
@given(flags(), st.integers(1, 5))
def test_history_is_a_list_of_the_newest_frames(episode_start: Array, frame_stack: int) -> None:
    episode_start[0] = True  # whatever is played begins with an episode
    length, columns = episode_start.shape
    frames = numbered_frames(length, columns)
    history = FrameHistory(columns, (2, 3), np.dtype(np.int32), frame_stack)
    newest: list[list[Array]] = [[] for _ in range(columns)]
    for t in range(length):
        given_frame = frames[t].copy()
        observation = history.observe(given_frame, episode_start[t])
        for b in range(columns):
            newest[b] = [frames[t, b]] * frame_stack if episode_start[t, b] else [*newest[b][1:], frames[t, b]]
            expected = newest[b][0] if frame_stack == 1 else np.stack(newest[b], axis=-1)
            np.testing.assert_array_equal(observation[b], expected)
            assert history.context.shape == (frame_stack - 1, columns, 2, 3)
            for place in range(frame_stack - 1):
                np.testing.assert_array_equal(history.context[place, b], newest[b][place])
        np.testing.assert_array_equal(given_frame, frames[t])  # what the environment gave is only read


@settings(max_examples=150, deadline=None)
@given(flags(), st.integers(1, 5), st.data())
def test_a_window_cut_anywhere_has_the_stacks_that_were_acted_on(
    episode_start: Array, frame_stack: int, data: st.DataObject
) -> None:
    """The context of the history at the window's first step, and the frames from there, restore every observation."""
    episode_start[0] = True
    length, columns = episode_start.shape
    begin = data.draw(st.integers(0, length - 1))
    frames = numbered_frames(length, columns)
    history = FrameHistory(columns, (2, 3), np.dtype(np.int32), frame_stack)
    acted, context = [], np.zeros(0)
    for t in range(length):
        acted.append(history.observe(frames[t], episode_start[t]).copy())
        if t == begin:
            context = history.context.copy()
    stored = np.concatenate([context, frames[begin:]])
    learned = stack_frames(torch.from_numpy(stored), torch.from_numpy(episode_start[begin:]), frame_stack)
    np.testing.assert_array_equal(learned, np.stack(acted[begin:]))


# Part 2: what an actor acts on and what it stores, with frames that tell which they are

SIDE, STACK = 20, 4
LENGTHS = np.array([1, 2, 5, 9])  # steps of an episode in each copy: below, at and above the size of the stack
COPIES = len(LENGTHS)


def frame(env: int, episode: int, clock: int) -> Array:
    """[20, 20] bytes whose columns repeat copy, episode and step in the episode; no two moments look alike."""
    return np.tile(np.array([100 + env, episode, clock, 200 - clock], np.uint8), (SIDE, SIDE // 4))


def moment(t: int, env: int) -> tuple[int, int]:
    """(episode, step in it) at time t of the stream: an episode takes its steps, and one more for the reset."""
    episode, clock = divmod(t, int(LENGTHS[env]) + 1)
    return episode, clock


def expected_stack(t: int, env: int) -> Array:
    """[20, 20, 4]: this step and the three before it, none from before the episode's first one."""
    episode, clock = moment(t, env)
    return np.stack([frame(env, episode, max(clock - back, 0)) for back in (3, 2, 1, 0)], axis=-1)


class PictureEnv:
    """Copies whose episodes last `LENGTHS` steps, and whose frames are `frame`s."""

    def __init__(self, savable: bool = True) -> None:
        self.beside = nothing_beside(COPIES)
        self.spec = EnvSpec((SIDE, SIDE, STACK), np.dtype(np.uint8), num_actions=3, frame_stack=STACK)
        self.num_envs = COPIES
        self._savable = savable
        self._time = 0

    def _frames(self) -> Array:
        return np.stack([frame(env, *moment(self._time, env)) for env in range(COPIES)])

    def reset(self, seed: int) -> Array:
        self._time = 0
        return self._frames()

    def step(self, action: Array) -> StepResult:
        self._time += 1
        clocks = np.array([moment(self._time, env)[1] for env in range(COPIES)])
        episodes = np.array([moment(self._time, env)[0] for env in range(COPIES)])
        ended = clocks == LENGTHS
        by_time_limit = episodes % 2 == 1
        return StepResult(self._frames(), clocks.astype(np.float32), ended & ~by_time_limit, ended & by_time_limit)

    def state_dict(self) -> State | None:
        return {"time": self._time} if self._savable else None

    def load_state_dict(self, state: State) -> Array:
        self._time = int(state["time"])
        return self._frames()

    def close(self) -> None: ...


def picture_config(burn_in: int, trained: int) -> Config:
    config = tiny_config("Toy/Counting-v0", sequence_steps=trained, burn_in_steps=burn_in)
    config = replace(config, network=replace(config.network, torso="impala-shallow", normalize=False))
    return with_lstm(config) if burn_in else config


def picture_actor(burn_in: int, trained: int, savable: bool = True) -> tuple[Actor, AgentNetwork]:
    return make_actor(PictureEnv(savable), picture_config(burn_in, trained))


def stacks_of(window: Window) -> Array:
    """[L + 1, B, 20, 20, 4], as the learner stacks them."""
    return stack_frames(torch.from_numpy(window.obs), torch.from_numpy(window.episode_start), STACK).numpy()


def assert_windows_are_the_streams(windows: list[Window], burn_in: int, trained: int, begin: int = 0) -> None:
    """Every entry of every window: its stack is what its time says, its start flag too.

    Also where ``valid`` is false: there stands an episode's final observation, on which a cut episode bootstraps, and
    index L is the bootstrap entry. Only times from before the stream's first step hold nothing.
    """
    for k, window in enumerate(windows):
        first = begin + k * trained - burn_in
        assert window.obs.shape == (STACK - 1 + burn_in + trained + 1, COPIES, SIDE, SIDE)
        stacks = stacks_of(window)
        assert len(stacks) == burn_in + trained + 1
        for j, stack in enumerate(stacks):
            t = first + j
            if t < 0:
                assert not window.valid[j].any()
                continue
            for env in range(COPIES):
                assert window.episode_start[j, env] == (moment(t, env)[1] == 0), (k, j, env)
                np.testing.assert_array_equal(stack[env], expected_stack(t, env), f"window {k}, entry {j}, copy {env}")


# Without burn-in, with a shorter and a longer one than what is trained, with windows below the size of the stack.
WINDOWS = [(0, 6), (0, 1), (0, 2), (3, 6), (6, 6), (9, 4), (7, 2), (2, 1)]


@pytest.mark.parametrize(("burn_in", "trained"), WINDOWS)
def test_stored_windows_hold_the_stacks_of_the_stream(burn_in: int, trained: int) -> None:
    count = 44 // trained
    actor, _ = picture_actor(burn_in, trained)
    windows = collect_windows(actor, count)
    assert_windows_are_the_streams(windows, burn_in, trained)
    # At least 42 steps: every copy begins at least 41 // (9 + 1) + 1 = 5 episodes, with window borders all over them.
    starts = sum(window.episode_start[burn_in : burn_in + trained].sum(axis=0) for window in windows)
    assert (starts >= 5).all()


@pytest.mark.parametrize(("burn_in", "trained"), [(0, 6), (9, 4)])
def test_the_network_acts_on_the_same_stacks(burn_in: int, trained: int) -> None:
    """What goes into the actor's network at time t, caught on its way."""
    actor, _ = picture_actor(burn_in, trained)
    acted: list[Array] = []

    def catch(module: torch.nn.Module, arguments: tuple[Seen, torch.Tensor]) -> None:
        acted.append(arguments[0].obs[0].numpy().copy())

    actor._player.network.register_forward_pre_hook(catch)
    windows = collect_windows(actor, 8)
    assert len(acted) == 8 * trained
    for t, observation in enumerate(acted):
        for env in range(COPIES):
            np.testing.assert_array_equal(observation[env], expected_stack(t, env), f"time {t}, copy {env}")
    learned = np.concatenate([stacks_of(window)[burn_in : burn_in + trained] for window in windows])
    np.testing.assert_array_equal(learned, np.stack(acted))


def test_the_probability_acted_with_is_the_learners() -> None:
    """The whole way: the learner's stacks through the learner's network give μ as it was acted."""
    actor, network = picture_actor(0, 6)
    index = torch.tensor((1.0, 2.0, 0.5))
    for window in collect_windows(actor, 5):
        inputs = seen_of(
            torch.from_numpy(stacks_of(window)[:-1]),
            *(
                torch.from_numpy(getattr(window, name)[:-1])
                for name in ("episode_start", "previous_action", "previous_reward", "index")
            ),
        )
        with torch.no_grad():
            advantage = network(inputs, network.initial_state(COPIES)).head.advantage
            probs = policy.log_probs(advantage, index.expand(*advantage.shape[:2], 3)).exp()
        taken = probs.gather(-1, torch.from_numpy(window.action)[..., None])[..., 0]
        np.testing.assert_allclose(window.behavior_prob, taken.numpy(), rtol=1e-4)
        assert 0 < window.behavior_prob.min() < window.behavior_prob.max() < 1


@pytest.mark.parametrize("stop_after", [1, 3, 5])
@pytest.mark.parametrize(("burn_in", "trained"), [(0, 6), (0, 2), (3, 6), (9, 4)])
def test_a_resumed_actor_continues_with_the_same_stacks(burn_in: int, trained: int, stop_after: int) -> None:
    """Another actor, of another seed and at another place, goes on exactly where the first one was stopped."""
    more = 5
    actor, _ = picture_actor(burn_in, trained)
    collect_windows(actor, stop_after)
    state = deepcopy(actor.state_dict())
    uninterrupted = collect_windows(actor, more)

    other, _ = make_actor(PictureEnv(), picture_config(burn_in, trained), seed=5)
    collect_windows(other, 2)
    other.load_state_dict(state)
    resumed = collect_windows(other, more)

    assert_windows_are_the_streams(resumed, burn_in, trained, begin=stop_after * trained)
    for one, two in zip(uninterrupted, resumed, strict=True):
        for name, array in one.arrays().items():
            np.testing.assert_array_equal(array, getattr(two, name), name)


@pytest.mark.parametrize(("burn_in", "trained"), [(0, 6), (9, 4)])
def test_where_the_environment_cannot_be_saved_no_stack_crosses_the_break(burn_in: int, trained: int) -> None:
    """The episodes begin anew, so the first stacks after the break must be the first frame four times."""
    actor, _ = picture_actor(burn_in, trained, savable=False)
    collect_windows(actor, 3)
    actor.load_state_dict(deepcopy(actor.state_dict()))
    windows = collect_windows(actor, 5)
    assert_windows_are_the_streams(windows, burn_in, trained)
    for env in range(COPIES):
        first = np.repeat(frame(env, 0, 0)[..., None], STACK, axis=-1)
        np.testing.assert_array_equal(stacks_of(windows[0])[burn_in, env], first)
