"""Atari against the ordinary single-environment Gymnasium stack, frame by frame, and each protocol's rules by counting.

The oracle is ``gymnasium.make`` with ``AtariPreprocessing`` and ``FrameStackObservation``, reset by hand. What was
found on the way, and what the tests rely on:

- Without sticky actions an episode depends on its actions alone: the emulator's random state enters nowhere else, so
  the two stacks stay equal through ends and resets, whatever their seeds. With sticky actions the stacks draw from
  different generators and cannot be compared; there the tests count.
- Five games begin with frames that the emulator plays by itself (``name_this_game``: 134). They are no part of the
  episode, and the cut does not count them.
- In the games used here every first frame is the same, so a frame can be recognized as an episode's first one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import ale_py
import cv2
import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

from gdi.config import EnvConfig
from gdi.envs import make_env
from gdi.envs.atari import AtariEnv
from gdi.envs.guard import Guard
from gdi.envs.names import canonical_env_id
from gdi.envs.protocols import PROTOCOLS, AtariProtocol, protocol_of
from gdi.errors import UserError
from gdi.networks.frames import FrameHistory
from gdi.scores.games import GAMES
from gdi.types import Array

gymnasium.register_envs(ale_py)

SIDE, ACTIONS, REPEAT = 84, 18, 4
NOOP, UP = 0, 2
BARE = replace(PROTOCOLS["paper"], max_noop_frames=0)  # no no-ops, no sticky actions: actions alone decide
SABER_BARE = replace(PROTOCOLS["saber"], sticky_action_prob=0.0)


@dataclass(frozen=True)
class Moment:
    """What one copy answered to one step."""

    stack: Array  # [84, 84, 4]
    reward: float
    terminated: bool
    truncated: bool
    is_reset: bool


class Oracle:
    """One game in the ordinary stack. The cut, the stuck rule and the next-step reset are done by hand."""

    def __init__(self, env_id: str, cut_steps: int = 0, stuck_steps: int = 0) -> None:
        game = gymnasium.make(env_id, frameskip=1, repeat_action_probability=0, full_action_space=True)
        game = AtariPreprocessing(
            game,
            noop_max=0,
            frame_skip=REPEAT,
            screen_size=SIDE,
            terminal_on_life_loss=False,
            grayscale_obs=True,
            scale_obs=False,
        )
        self._env = FrameStackObservation(game, 4, padding_type="reset")
        self._cut_steps, self._stuck_steps = cut_steps, stuck_steps
        self._over = False

    def reset(self) -> Array:
        self._steps = self._without_reward = 0
        self._over = False
        stack, _ = self._env.reset(seed=11)
        return np.moveaxis(stack, 0, -1)

    def step(self, action: int) -> Moment:
        if self._over:
            return Moment(self.reset(), 0.0, False, False, True)
        stack, reward, terminated, truncated, _ = self._env.step(action)
        assert not truncated  # the emulator's own limit stays far away
        self._steps += 1
        self._without_reward = 0 if reward else self._without_reward + 1
        cut = bool(self._cut_steps) and self._steps >= self._cut_steps
        stuck = bool(self._stuck_steps) and self._without_reward >= self._stuck_steps
        truncated = (cut or stuck) and not terminated
        self._over = terminated or truncated
        return Moment(np.moveaxis(stack, 0, -1), float(reward), terminated, truncated, False)

    def close(self) -> None:
        self._env.close()


@dataclass
class Tally:
    """What a comparison has really seen, so that none passes on nothing."""

    terminated: int = 0
    truncated: int = 0
    rewards: int = 0
    lasting: int = 0  # most steps of any episode


def assert_plays_like_the_oracle(
    env: AtariEnv,
    oracles: list[Oracle],
    steps: int,
    choose: Callable[[np.random.Generator, int], Array],
    *,
    compare_cut_frames: bool = True,
) -> Tally:
    """Every copy against an oracle of its own; stacked observations through `FrameHistory`, as an actor does it."""
    count, rng, tally = env.num_envs, np.random.default_rng(5), Tally()
    history = FrameHistory(count, (SIDE, SIDE), np.dtype(np.uint8), 4)
    first = env.reset(3)
    assert first.shape == (count, SIDE, SIDE)
    assert first.dtype == np.uint8
    stacks = history.observe(first, np.ones(count, bool))
    for i, oracle in enumerate(oracles):
        np.testing.assert_array_equal(stacks[i], oracle.reset())
    over, lasted = np.zeros(count, bool), np.zeros(count, int)
    for t in range(steps):
        action = choose(rng, t)
        step = env.step(action)
        stacks = history.observe(step.obs, over)
        for i, oracle in enumerate(oracles):
            expected = oracle.step(int(action[i]))
            where = f"copy {i}, step {t}"
            assert expected.is_reset == over[i], where
            assert step.reward[i] == expected.reward, where
            assert (step.terminated[i], step.truncated[i]) == (expected.terminated, expected.truncated), where
            channels = slice(0, 3) if expected.truncated and not compare_cut_frames else slice(0, 4)
            np.testing.assert_array_equal(stacks[i][..., channels], expected.stack[..., channels], where)
        tally.terminated += int(step.terminated.sum())
        tally.truncated += int(step.truncated.sum())
        tally.rewards += int((step.reward != 0).sum())
        lasted = np.where(over, 0, lasted + 1)
        tally.lasting = max(tally.lasting, int(lasted.max()))
        over = step.terminated | step.truncated
    return tally


def any_action(count: int) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, t: rng.integers(ACTIONS, size=count)


def gray_frame(game: gymnasium.Env[Any, Any]) -> Array:
    """The screen now, as one observation that is not pooled with another."""
    screen = game.unwrapped.ale.getScreenGrayscale()  # type: ignore[attr-defined]
    return np.asarray(cv2.resize(screen, (SIDE, SIDE), interpolation=cv2.INTER_AREA))


def single_frames(env_id: str) -> gymnasium.Env[Any, Any]:
    game = gymnasium.make(env_id, frameskip=1, repeat_action_probability=0, full_action_space=True)
    game.reset(seed=0)
    return game


def watch_frame_numbers(env: AtariEnv, monkeypatch: pytest.MonkeyPatch) -> list[Array]:
    """Grows by the emulators' episode frame numbers, [N], at every reset and step of the inner environment."""
    seen: list[Array] = []

    def watched(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            seen.append(np.array(result[-1]["episode_frame_number"]))
            return result

        return call

    for name in ("reset", "step"):
        monkeypatch.setattr(env._env, name, watched(getattr(env._env, name)))
    return seen


def play(env: AtariEnv, actions: Array, seed: int) -> tuple[Array, Array, Array, Array]:
    """A whole stream from a seed: observations [T + 1, N, ...], rewards, ends, cuts [T, N]."""
    obs, rewards, ends, cuts = [env.reset(seed)], [], [], []
    for action in actions:
        step = env.step(action)
        obs.append(step.obs)
        rewards.append(step.reward)
        ends.append(step.terminated)
        cuts.append(step.truncated)
    return np.stack(obs), np.stack(rewards), np.stack(ends), np.stack(cuts)


def random_actions(steps: int, count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(ACTIONS, size=(steps, count))


# 1. The ordinary stack


@pytest.mark.atari_tables
@pytest.mark.parametrize(
    ("game", "steps"), [("Breakout", 300), ("Pong", 920), ("Seaquest", 500), ("MontezumaRevenge", 400)]
)
def test_observations_rewards_and_ends_are_the_ordinary_stacks(game: str, steps: int) -> None:
    """Two copies with different actions, through at least one real game end; Montezuma gives random play no reward."""
    env_id = f"ALE/{game}-v5"
    oracles = [Oracle(env_id) for _ in range(2)]
    with closing(AtariEnv(env_id, 2, BARE, threads=1)) as env:
        tally = assert_plays_like_the_oracle(env, oracles, steps, any_action(2))
    assert tally.terminated >= 1
    assert tally.truncated == 0
    assert tally.rewards >= (0 if game == "MontezumaRevenge" else 3)


@pytest.mark.atari_tables
@pytest.mark.parametrize("game", ["Breakout", "SpaceInvaders", "NameThisGame"])
def test_cut_episodes_are_the_ordinary_stacks(game: str) -> None:
    """Also NameThisGame, which begins with 134 frames of its own: they must not shorten the episode.

    The frame at the cut itself has its own test below.
    """
    env_id, cut = f"ALE/{game}-v5", 45
    oracles = [Oracle(env_id, cut_steps=cut) for _ in range(2)]
    with closing(AtariEnv(env_id, 2, BARE, max_episode_steps=cut, threads=1)) as env:
        tally = assert_plays_like_the_oracle(env, oracles, 190, any_action(2), compare_cut_frames=False)
    # An episode takes at most 45 steps and one for the reset: 190 steps hold 4 whole periods.
    assert tally.truncated + tally.terminated >= 2 * (190 // 46)
    assert tally.lasting == cut


@pytest.mark.parametrize("game", ["Breakout", "Seaquest"])
def test_the_frame_at_a_cut_is_the_last_one_played(game: str) -> None:
    """A truncated step bootstraps on it (``gdi.types``), so it must be the pooled last two frames like any other."""
    env_id, cut = f"ALE/{game}-v5", 45
    oracles = [Oracle(env_id, cut_steps=cut)]
    with closing(AtariEnv(env_id, 1, BARE, max_episode_steps=cut, threads=1)) as env:
        tally = assert_plays_like_the_oracle(env, oracles, 2 * (cut + 1), any_action(1))
    assert tally.truncated == 2


@pytest.mark.atari_tables
def test_the_stuck_rule_is_the_ordinary_stacks() -> None:
    """Without sticky actions ``saber`` is exact too: cut after 30 steps without a reward, counted by the oracle."""
    env_id, stuck = "ALE/Riverraid-v5", 30
    protocol = replace(SABER_BARE, stuck_frames=stuck * REPEAT)
    oracles = [Oracle(env_id, stuck_steps=stuck) for _ in range(3)]
    with closing(AtariEnv(env_id, 3, protocol, threads=1)) as env:
        tally = assert_plays_like_the_oracle(env, oracles, 200, any_action(3))
    assert tally.truncated >= 6  # of each copy two, the second in an episode after a cut
    assert tally.rewards >= 10
    assert tally.lasting > stuck  # only a reward that restarts the count lets an episode last longer


# 2. Automatic resets, and arrays that stay as they were returned


@pytest.mark.parametrize(
    ("protocol", "max_episode_steps", "steps"),
    [
        (BARE, 0, 450),
        (BARE, 17, 120),
        (replace(PROTOCOLS["machado"], cut_frames=100), 0, 120),
        (replace(PROTOCOLS["saber"], stuck_frames=60), 0, 120),
        (replace(PROTOCOLS["saber"], stuck_frames=60), 12, 120),
    ],
    ids=["game-over", "max-steps", "machado-cut", "saber-stuck", "saber-both"],
)
def test_a_reset_step_is_no_transition(protocol: AtariProtocol, max_episode_steps: int, steps: int) -> None:
    """Every way to end: the next step has no reward and no flag, and shows an episode's first frame."""
    count = 3
    with closing(AtariEnv("ALE/Breakout-v5", count, protocol, max_episode_steps, threads=1)) as env:
        obs, reward, terminated, truncated = play(env, random_actions(steps, count), seed=2)
    first = obs[0, 0]
    ended = terminated | truncated
    assert ended[:-1].sum() >= count
    assert not (terminated & truncated).any()
    assert reward.dtype == np.float32
    assert terminated.dtype == truncated.dtype == bool
    for t, i in zip(*np.nonzero(ended[:-1]), strict=True):
        np.testing.assert_array_equal(obs[t + 2, i], first)  # obs[t + 1] is the final one, obs[t + 2] the reset's
        assert reward[t + 1, i] == 0
        assert not ended[t + 1, i]
        assert (obs[t + 1, i] != first).any()


def test_the_action_of_a_reset_step_is_ignored() -> None:
    """Freeway's chicken answers UP at once: an action that reached the new episode would move it."""
    count, cut = 2, 3
    with closing(AtariEnv("ALE/Freeway-v5", count, BARE, max_episode_steps=cut, threads=1)) as env:
        actions = np.full((12, count), NOOP)
        actions[cut :: cut + 1, 0] = UP  # the reset steps of copy 0; copy 1 never moves
        obs, _, _, truncated = play(env, actions, seed=0)
        assert truncated[cut - 1 :: cut + 1].all()
        np.testing.assert_array_equal(obs[:, 0], obs[:, 1])
        actions[0, 0] = UP  # and outside a reset step UP is seen
        obs, *_ = play(env, actions, seed=0)
        assert (obs[1, 0] != obs[1, 1]).any()


def test_returned_arrays_are_never_written_again() -> None:
    """Windows keep references, so a buffer that is used again would rewrite the past."""
    count = 3
    protocol = replace(PROTOCOLS["saber"], stuck_frames=60)
    kept: list[tuple[Array, Array]] = []
    resets = 0
    with closing(AtariEnv("ALE/Breakout-v5", count, protocol, 40, threads=1)) as env:
        for seed in (1, 2):  # a second reset must leave the first stream alone too
            first = env.reset(seed)
            kept.append((first, first.copy()))
            for action in random_actions(150, count, seed):
                before = action.copy()
                step = env.step(action)
                np.testing.assert_array_equal(action, before)
                kept += [(array, array.copy()) for array in step]
                resets += int((step.terminated | step.truncated).sum())
    assert resets >= count
    for array, copy in kept:
        np.testing.assert_array_equal(array, copy)
    memory = [array.__array_interface__["data"][0] for array, _ in kept]
    assert len(set(memory)) == len(memory)  # all alive at once, so each has memory of its own


# 3. The cut and the stuck rule


@pytest.mark.parametrize(("cut_frames", "max_episode_steps", "expected"), [(80, 0, 20), (80, 7, 7), (80, 30, 20)])
@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_the_cut_is_a_truncation_after_exactly_its_frames(
    name: str, cut_frames: int, max_episode_steps: int, expected: int
) -> None:
    """cut_frames / 4 steps of play, whatever the number of no-ops before them: 80 / 4 = 20, and never later."""
    count = 2
    protocol = replace(PROTOCOLS[name], cut_frames=cut_frames)
    with closing(AtariEnv("ALE/Breakout-v5", count, protocol, max_episode_steps, threads=1)) as env:
        actions = np.full((3 * (expected + 1), count), NOOP)
        _, _, terminated, truncated = play(env, actions, seed=4)
    # No-ops do not end Breakout: every episode takes `expected` steps, the last one truncated, and one for the reset.
    period = np.arange(len(actions)) % (expected + 1)
    np.testing.assert_array_equal(truncated, np.repeat((period == expected - 1)[:, None], count, axis=1))
    assert not terminated.any()


def test_the_protocols_cuts_are_the_published_ones() -> None:
    """At 60 frames a second: Machado's 30 minutes, SABER's 5 minutes and 100 hours; tab:ale_process has 100,000."""
    assert PROTOCOLS["paper"].cut_frames == 100_000
    assert PROTOCOLS["machado"].cut_frames == 30 * 60 * 60
    assert PROTOCOLS["saber"].stuck_frames == 5 * 60 * 60
    assert PROTOCOLS["saber"].cut_frames == 100 * 60 * 60 * 60
    assert [PROTOCOLS[name].sticky_action_prob for name in ("paper", "machado", "saber")] == [0.0, 0.25, 0.25]
    assert [PROTOCOLS[name].max_noop_frames for name in ("paper", "machado", "saber")] == [30, 0, 0]


@pytest.mark.parametrize("stuck_frames", [40, 60])
def test_who_never_gets_a_reward_is_cut_as_stuck(stuck_frames: int) -> None:
    """Breakout without FIRE: no ball, no reward, no end. The count begins at 0 in each of the next episodes too."""
    count, expected = 2, stuck_frames // REPEAT
    protocol = replace(PROTOCOLS["saber"], stuck_frames=stuck_frames)
    with closing(AtariEnv("ALE/Breakout-v5", count, protocol, threads=1)) as env:
        actions = np.full((4 * (expected + 1), count), NOOP)
        _, reward, terminated, truncated = play(env, actions, seed=4)
    period = np.arange(len(actions)) % (expected + 1)
    np.testing.assert_array_equal(truncated, np.repeat((period == expected - 1)[:, None], count, axis=1))
    assert not reward.any()
    assert not terminated.any()


def test_a_reward_restarts_the_count() -> None:
    """The rule from the rewards alone, with sticky actions on: the sticky stream is its own, the counting is not."""
    count, stuck = 4, 30
    protocol = replace(PROTOCOLS["saber"], stuck_frames=stuck * REPEAT)
    with closing(AtariEnv("ALE/Riverraid-v5", count, protocol, threads=1)) as env:
        _, reward, terminated, truncated = play(env, random_actions(400, count), seed=9)
    longest = 0
    for i in range(count):
        without = lasted = 0
        over = False
        for t in range(len(reward)):
            if over:
                without = lasted = 0
                over = False
                continue
            without = 0 if reward[t, i] else without + 1
            lasted += 1
            assert truncated[t, i] == (without >= stuck and not terminated[t, i]), (t, i)
            over = terminated[t, i] or truncated[t, i]
            longest = max(longest, lasted)
    assert truncated.sum() >= count
    assert longest > stuck  # without the restart no episode could


@pytest.mark.atari_tables
def test_a_stuck_copys_reset_disturbs_no_other() -> None:
    """Copies 0 and 2 stand still and are cut again and again; 1 and 3 must play as if the rule did not exist.

    The comparison ends where 1 or 3 is cut itself. Sticky actions are on: resetting another copy must not draw from
    this one's random stream either.
    """
    count, stuck, steps = 4, 30, 200
    actions = random_actions(steps, count, seed=1)  # random play in Riverraid has a reward after 22 steps, no-ops never
    actions[:, ::2] = NOOP
    with_rule = replace(PROTOCOLS["saber"], stuck_frames=stuck * REPEAT)
    without_rule = replace(PROTOCOLS["saber"], stuck_frames=0)
    streams = []
    for protocol in (with_rule, without_rule):
        with closing(AtariEnv("ALE/Riverraid-v5", count, protocol, threads=1)) as env:
            streams.append(play(env, actions, seed=6))
    ruled, free = streams
    assert not free[3].any()
    for i in (0, 2):
        assert ruled[3][:, i].sum() >= 3
    for i in (1, 3):
        cuts = np.flatnonzero(ruled[3][:, i])
        until = int(cuts[0]) if len(cuts) else steps
        assert until > stuck + 10  # a stuck reset of the others lies well before
        np.testing.assert_array_equal(ruled[0][: until + 1, i], free[0][: until + 1, i])
        for mine, theirs in zip(ruled[1:3], free[1:3], strict=True):
            np.testing.assert_array_equal(mine[:until, i], theirs[:until, i])
        assert free[1][:until, i].any()


# 4. No-ops


def noop_frames(env_id: str, most: int) -> dict[bytes, int]:
    """The observation after k no-op frames -> k, for k = 0 ... most; all must differ."""
    game = single_frames(env_id)
    known = {gray_frame(game).tobytes(): 0}
    for k in range(1, most + 1):
        game.step(NOOP)
        known[gray_frame(game).tobytes()] = k
    game.close()
    assert len(known) == most + 1
    return known


def first_frames(env: AtariEnv, resets: int, seeded_every: int = 10**6) -> Iterator[tuple[bool, Array]]:
    """(by an automatic reset?, first observations [N]) of as many resets; episodes last one step.

    Those at a seed are rare, because each loads the game again, which takes ten times as long.
    """
    yield False, env.reset(0)
    for seed in range(1, resets):
        step = env.step(np.zeros(env.num_envs, np.int64))
        assert step.truncated.all()
        step = env.step(np.zeros(env.num_envs, np.int64))
        assert not step.truncated.any()
        yield True, step.obs
        if seed % seeded_every == 0:
            yield False, env.reset(seed)


@pytest.fixture(scope="module")
def papers_noops() -> dict[bool, Array]:
    """By an automatic reset? -> the no-op frames before an episode of Freeway, [resets, 8]."""
    count, known = 8, noop_frames("ALE/Freeway-v5", 40)
    seen: dict[bool, list[list[int]]] = {False: [], True: []}
    with closing(AtariEnv("ALE/Freeway-v5", count, PROTOCOLS["paper"], max_episode_steps=1, threads=1)) as env:
        for automatic, obs in first_frames(env, resets=28, seeded_every=9):
            seen[automatic].append([known[frame.tobytes()] for frame in obs])
    return {automatic: np.array(noops) for automatic, noops in seen.items()}


@pytest.mark.atari_tables
def test_the_papers_episodes_begin_after_1_to_30_noop_frames(papers_noops: dict[bool, Array]) -> None:
    """Freeway's cars move in every frame, so an observation tells the number of no-ops before it. Uniform, never 0,
    and the same for the reset at a seed and for the automatic one."""
    automatic, at_seed = papers_noops[True].ravel(), papers_noops[False].ravel()
    # 27 automatic resets and 4 at a seed (the first, then every ninth of 27), 8 copies each.
    assert [len(automatic), len(at_seed)] == [27 * 8, 4 * 8]
    assert (automatic.min(), automatic.max()) == (1, 30)
    assert at_seed.min() >= 1
    assert at_seed.max() <= 30
    assert len(set(at_seed.tolist())) > 10
    counts = np.bincount([*automatic, *at_seed], minlength=31)[1:]
    expected = counts.sum() / 30
    # χ² with 29 degrees of freedom: mean 29, standard deviation √58 = 7.6; 29 + 4 · 7.6 = 59.
    assert ((counts - expected) ** 2 / expected).sum() < 59


@pytest.mark.atari_tables
def test_games_that_begin_with_frames_of_their_own_have_1_to_30_noops_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """berzerk, double_dunk, name_this_game, surround and yars_revenge. The emulator counts their frames: taken off."""
    count, resets = 8, 25
    with closing(AtariEnv("ALE/DoubleDunk-v5", 1, BARE, threads=1)) as env:
        numbers = watch_frame_numbers(env, monkeypatch)
        env.reset(0)
        own = int(numbers[-1][0])
    assert own > 0
    noops: list[int] = []
    with closing(AtariEnv("ALE/DoubleDunk-v5", count, PROTOCOLS["paper"], max_episode_steps=1, threads=1)) as env:
        numbers = watch_frame_numbers(env, monkeypatch)
        for _ in first_frames(env, resets):
            noops += (numbers[-1] - own).tolist()
    assert max(noops) <= 30
    assert min(noops) >= 1


@pytest.mark.atari_tables
def test_noops_differ_between_copies_and_between_episodes_of_a_copy(papers_noops: dict[bool, Array]) -> None:
    """One draw for all copies, or one that each copy repeats, would also be uniform."""
    noops = papers_noops[True][:9]
    assert all(len(set(row)) > 1 for row in noops.tolist())
    assert all(len(set(column)) > 3 for column in noops.T.tolist())


@pytest.mark.parametrize("name", ["machado", "saber"])
def test_the_other_protocols_have_no_noops(name: str) -> None:
    known = noop_frames("ALE/Freeway-v5", 40)
    with closing(AtariEnv("ALE/Freeway-v5", 4, PROTOCOLS[name], max_episode_steps=1, threads=1)) as env:
        for _, obs in first_frames(env, 6):
            assert [known[frame.tobytes()] for frame in obs] == [0] * 4


# 5. Seeds and sticky actions


@pytest.mark.atari_tables
@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_the_seed_decides_the_stream(name: str) -> None:
    """The same seed twice in one environment and in a second one beside it, also through automatic resets; another
    seed gives another stream: other no-ops under ``paper``, other sticky actions under the others."""
    count = 2
    actions = random_actions(70, count)
    protocol = replace(PROTOCOLS[name], stuck_frames=80 if name == "saber" else 0)
    with (
        closing(AtariEnv("ALE/Breakout-v5", count, protocol, 30, threads=1)) as env,
        closing(AtariEnv("ALE/Breakout-v5", count, protocol, 30, threads=2)) as beside,
    ):
        stream, again, third = play(env, actions, 5), play(env, actions, 5), play(beside, actions, 5)
        other = play(env, actions, 6)
        far = play(env, actions, 1005)
    for repeated in (again, third):
        for one, two in zip(stream, repeated, strict=True):
            np.testing.assert_array_equal(one, two)
    for different in (other, far):
        assert (stream[0] != different[0]).any()


def test_copies_of_neighbouring_seeds_are_no_shifted_copies_of_each_other() -> None:
    """Copy i + 1 of seed s must not be copy i of seed s + 1, or runs with seeds 0, 1, 2 share most of their data."""
    count = 4
    actions = np.repeat(random_actions(60, 1), count, axis=1)
    with closing(AtariEnv("ALE/Freeway-v5", count, PROTOCOLS["machado"], threads=1)) as env:
        one, two = play(env, actions, 0)[0], play(env, actions, 1)[0]
    for i in range(count):
        for j in range(count):
            assert (one[:, i] != two[:, j]).any(), (i, j)
            assert i == j or (one[:, i] != one[:, j]).any(), (i, j)


def test_without_sticky_actions_and_noops_the_actions_decide() -> None:
    """The counterpart of the next test: with nothing random left, other seeds change nothing."""
    actions = random_actions(150, 2)
    with closing(AtariEnv("ALE/Freeway-v5", 2, BARE, threads=1)) as env:
        for one, two in zip(play(env, actions, 0), play(env, actions, 1), strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.atari_tables
@pytest.mark.parametrize("name", ["machado", "saber"])
def test_sticky_actions_delay_an_action_by_k_frames_with_probability_a_quarter_to_the_k(name: str) -> None:
    """Freeway's chicken answers UP in the same frame. After a reset the last action is NOOP, so the first UP is late by
    k frames with probability 3/4 · (1/4)^k, and by all four with (1/4)^4; the step's observation tells k."""
    late: dict[bytes, int] = {}
    for k in range(REPEAT + 1):
        game = single_frames("ALE/Freeway-v5")
        screens = []
        for frame in range(REPEAT):
            game.step(NOOP if frame < k else UP)
            screens.append(game.unwrapped.ale.getScreenGrayscale())  # type: ignore[attr-defined]
        pooled = np.maximum(screens[-2], screens[-1])
        late[cv2.resize(pooled, (SIDE, SIDE), interpolation=cv2.INTER_AREA).tobytes()] = k
        game.close()
    assert len(late) == REPEAT + 1
    count, episodes = 8, 16
    delays = []
    with closing(AtariEnv("ALE/Freeway-v5", count, PROTOCOLS[name], max_episode_steps=2, threads=1)) as env:
        env.reset(0)
        for _ in range(episodes):
            delays.append([late[frame.tobytes()] for frame in env.step(np.full(count, UP)).obs])
            assert env.step(np.full(count, UP)).truncated.all()
            env.step(np.full(count, UP))  # the reset
    # k = 0, 1, and more: 3/4, 3/16 and 1/16 of 8 · 16 = 128 episodes.
    counts = np.bincount(np.minimum(np.ravel(delays), 2), minlength=3)
    expected = np.array([96, 24, 8])
    assert ((counts - expected) ** 2 / expected).sum() < 14  # χ² with 2 degrees of freedom exceeds 13.8 once in 1000
    for copy in np.transpose(delays).tolist():
        assert 0 < copy.count(0) < episodes  # no copy repeats its draws from episode to episode


def test_sticky_actions_part_two_runs_of_the_same_actions() -> None:
    actions = np.repeat(random_actions(100, 1), 2, axis=1)
    with closing(AtariEnv("ALE/Freeway-v5", 2, PROTOCOLS["machado"], threads=1)) as env:
        obs, *_ = play(env, actions, 0)
    np.testing.assert_array_equal(obs[0, 0], obs[0, 1])
    assert (obs[-1, 0] != obs[-1, 1]).any()


# 6. Frames and shapes


@pytest.mark.parametrize("name", list(PROTOCOLS))
def test_a_step_is_four_frames_of_eighteen_actions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    count, steps = 2, 40
    with closing(AtariEnv("ALE/Pong-v5", count, PROTOCOLS[name], threads=1)) as env:
        assert env.spec.frames_per_step == 4
        assert env.spec.num_actions == 18
        assert env.spec.frame_stack == 4
        assert env.spec.observation_shape == (84, 84, 4)
        assert env.spec.frame_shape == (84, 84)
        assert env.spec.observation_dtype == np.uint8
        assert env.num_envs == count
        numbers = watch_frame_numbers(env, monkeypatch)
        play(env, random_actions(steps, count), seed=0)
    frames = np.stack(numbers)
    assert len(frames) == 1 + steps
    np.testing.assert_array_equal(np.diff(frames, axis=0), np.full((steps, count), 4))
    if name == "paper":
        assert ((frames[0] >= 1) & (frames[0] <= 30)).all()
    else:
        assert (frames[0] == 0).all()


# 7. All games


@pytest.mark.atari_tables
def test_all_57_games_start_play_and_close() -> None:
    """18 actions, and in Skiing, whose controller has no button, the 9 without FIRE.

    Every game plays under the paper's protocol, which knows each game's own first frames. Every fourth also plays under
    one of the two with sticky actions, for which our code treats all games alike. Loading a game is what takes time.
    Each plays 40 steps, and then, where nothing has moved, until something does.
    """
    least_steps, most_steps = 40, 200

    def run(job: tuple[str, str]) -> tuple[str, str]:
        game, name = job
        actions = random_actions(most_steps, 1) % (9 if game == "skiing" else 18)
        with closing(AtariEnv(canonical_env_id(game), 1, PROTOCOLS[name], threads=1)) as env:
            assert env.spec.num_actions == (9 if game == "skiing" else 18), job
            first = env.reset(0)
            assert (first.shape, first.dtype) == ((1, SIDE, SIDE), np.uint8), job
            changed = False
            for played, action in enumerate(actions):
                if changed and played >= least_steps:
                    break
                step = env.step(action)
                assert (step.obs.shape, step.obs.dtype) == ((1, SIDE, SIDE), np.uint8), job
                assert (step.reward.shape, step.reward.dtype) == ((1,), np.float32), job
                assert np.isfinite(step.reward).all(), job
                assert (step.terminated.shape, step.terminated.dtype) == ((1,), bool), job
                assert (step.truncated.shape, step.truncated.dtype) == ((1,), bool), job
                assert not step.truncated.any(), job  # 800 frames are below every cut
                changed |= bool((step.obs != first).any())
            assert changed, job
        return job

    sticky = [name for name in PROTOCOLS if name != "paper"]
    jobs = [(game, "paper") for game in GAMES] + [(game, sticky[i % 2]) for i, game in enumerate(GAMES[::4])]
    with ThreadPoolExecutor(8) as pool:  # a step mostly waits for the emulator's thread: more of them than cores
        assert list(pool.map(run, jobs)) == jobs
    assert len(jobs) == 57 + 15


# 8. Names


def registered() -> dict[str, str]:
    """Game -> Gymnasium's own ``ALE/...-v5`` id, from the registry: the one place where neither side is ours."""
    return {
        spec.kwargs["game"]: env_id
        for env_id, spec in gymnasium.registry.items()
        if env_id.startswith("ALE/") and env_id.endswith("-v5") and spec.kwargs.get("obs_type", "rgb") != "ram"
    }


@pytest.mark.parametrize("game", GAMES)
def test_every_spelling_of_a_game_is_gymnasiums_id(game: str) -> None:
    env_id = registered()[game]
    assert env_id in gymnasium.registry
    camel = env_id.removeprefix("ALE/").removesuffix("-v5")
    for spelling in (game, f"{camel}-v5", env_id, f"{camel}NoFrameskip-v4", camel, env_id.lower()):
        assert canonical_env_id(spelling) == env_id, spelling


def test_spellings_written_out() -> None:
    assert canonical_env_id("pong") == "ALE/Pong-v5"
    assert canonical_env_id("PongNoFrameskip-v4") == "ALE/Pong-v5"
    assert canonical_env_id("ms_pacman") == "ALE/MsPacman-v5"
    assert canonical_env_id("montezuma_revenge") == "ALE/MontezumaRevenge-v5"
    assert canonical_env_id("up_n_down") == "ALE/UpNDown-v5"


def test_only_atari_games_are_refused_for_showing_memory() -> None:
    for env_id in ("ALE/Pong-ram-v5", "Pong-ram-v4", "Pong-ramNoFrameskip-v4"):
        with pytest.raises(UserError, match="RAM observations"):
            canonical_env_id(env_id)
    for env_id in ("mine:Off-Ramp-v0", "Robot-Ramble-v0"):
        assert canonical_env_id(env_id) == env_id


def test_an_unknown_game_is_a_user_error_that_names_the_nearest() -> None:
    with pytest.raises(UserError, match="'pong'"):
        canonical_env_id("ALE/Pongg-v5")
    with pytest.raises(UserError, match="not one of the benchmark's 57"):
        canonical_env_id("ALE/Adventure-v5")  # an Atari game, but not of the benchmark


@pytest.mark.parametrize(
    "env_id",
    [
        "CartPole-v1",
        "MinAtar/Breakout-v0",
        "MinAtar/SpaceInvaders-v1",
        "module:Env-v0",
        "module:Pong-v5",
        "Toy/Chain-v0",
    ],
)
def test_other_ids_stay_as_they_are(env_id: str) -> None:
    assert canonical_env_id(env_id) == env_id


def test_make_env_makes_an_atari_game() -> None:
    with closing(make_env(EnvConfig(id="ALE/Pong-v5", protocol="paper", num_envs=2))) as env:
        assert isinstance(env, Guard)
        assert isinstance(env.inner, AtariEnv)
        assert env.num_envs == 2
        assert env.reset(0).shape == (2, SIDE, SIDE)
    config = EnvConfig(id="ALE/Pong-v5", protocol="machado", num_envs=2, max_episode_steps=3)
    with closing(make_env(config, num_envs=4, threads=1)) as env:
        _, _, _, truncated = play(env, np.zeros((3, 4), np.int64), 0)  # type: ignore[arg-type]
        assert truncated.tolist() == [[False] * 4, [False] * 4, [True] * 4]


@pytest.mark.parametrize("protocol", ["", "papers", "Machado"])
def test_an_atari_game_without_a_known_protocol_is_a_user_error(protocol: str) -> None:
    with pytest.raises(UserError, match="paper, machado, saber"):
        make_env(EnvConfig(id="ALE/Pong-v5", protocol=protocol, num_envs=2))  # type: ignore[arg-type]


def test_a_limit_above_the_protocols_is_a_user_error() -> None:
    """It would do nothing, because a run may only shorten the episodes of its protocol."""
    assert protocol_of(EnvConfig("ALE/Pong-v5", protocol="paper", max_episode_steps=25_000)).name == "paper"
    with pytest.raises(UserError, match=r"max-episode-steps 25001 is more than protocol 'paper' allows \(25000\)"):
        make_env(EnvConfig("ALE/Pong-v5", protocol="paper", max_episode_steps=25_001), 1)
