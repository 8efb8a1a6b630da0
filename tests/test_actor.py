"""The actor on counting environments: any off-by-one at any border fails by arithmetic."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest
import torch

from gdi import policy
from gdi.acting.actor import Propose
from gdi.envs.toy import make_toy
from gdi.networks import Seen
from gdi.types import Index, Window
from helpers import collect_windows, make_actor, tiny_config, with_lstm

ENVS = 4
EPISODE, CLOCK = 0, 1  # what the two first entries of a counting observation are


def counting_windows(count: int = 12, *, burn_in: int = 0, trained: int = 6, lstm: bool = False):
    config = tiny_config("Toy/Counting-v0", sequence_steps=trained, burn_in_steps=burn_in)
    config = with_lstm(config) if lstm else config
    actor, network = make_actor(make_toy("Toy/Counting-v0", ENVS), config)
    return collect_windows(actor, count), network


def stream(windows: list[Window], name: str, burn_in: int = 0) -> np.ndarray:
    """The trained steps of all windows, one after another, [T, B, ...]."""
    length = windows[0].action.shape[0]
    return np.concatenate([getattr(w, name)[burn_in:length] for w in windows])


def test_stream_is_what_the_environment_did() -> None:
    windows, _ = counting_windows()
    obs, reward, valid = stream(windows, "obs"), stream(windows, "reward"), stream(windows, "valid")
    terminated, truncated = stream(windows, "terminated"), stream(windows, "truncated")
    start = stream(windows, "episode_start")
    for env in range(ENVS):
        length = 5 + env  # steps of an episode in this copy
        for t in range(len(obs)):
            # An episode takes `length` steps and one reset step: its period.
            episode, clock = divmod(t, length + 1)
            assert obs[t, env, EPISODE] == episode
            assert obs[t, env, CLOCK] == clock
            is_reset = clock == length
            assert valid[t, env] == (not is_reset)
            assert reward[t, env] == (0 if is_reset else clock)
            assert start[t, env] == (clock == 0)
            assert terminated[t, env] == (clock == length - 1 and episode % 2 == 0)
            assert truncated[t, env] == (clock == length - 1 and episode % 2 == 1)


def test_bootstrap_entry_is_the_next_windows_first() -> None:
    windows, _ = counting_windows()
    for before, after in pairwise(windows):
        for name in Seen._fields:
            np.testing.assert_array_equal(getattr(before, name)[-1], getattr(after, name)[0])


def test_previous_action_and_reward_are_one_step_late() -> None:
    windows, _ = counting_windows()
    np.testing.assert_array_equal(stream(windows, "previous_action")[1:], stream(windows, "action")[:-1])
    np.testing.assert_array_equal(stream(windows, "previous_reward")[1:], stream(windows, "reward")[:-1])


@pytest.mark.parametrize(("burn_in", "trained"), [(4, 6), (6, 6), (9, 4)])
def test_burn_in_is_the_steps_before_and_trained_steps_do_not_overlap(burn_in: int, trained: int) -> None:
    windows, _ = counting_windows(burn_in=burn_in, trained=trained, lstm=True)
    whole = {name: stream(windows, name, burn_in) for name in ("obs", "action", "reward", "valid", "index", "version")}
    for k, window in enumerate(windows):
        begin = k * trained  # of the trained part in the stream
        for name, values in whole.items():
            available = min(begin, burn_in)
            np.testing.assert_array_equal(
                getattr(window, name)[burn_in - available : burn_in + trained],
                values[begin - available : begin + trained],
            )
    assert not windows[0].valid[:burn_in].any()
    assert windows[0].episode_start[burn_in].all()


@pytest.mark.parametrize(("burn_in", "trained"), [(0, 6), (4, 6), (9, 4)])
def test_stored_state_is_the_state_at_the_first_step(burn_in: int, trained: int) -> None:
    """Unrolling the whole stream from its beginning passes through every stored state."""
    windows, network = counting_windows(burn_in=burn_in, trained=trained, lstm=True)
    whole = Seen(*(torch.from_numpy(stream(windows, name, burn_in)) for name in Seen._fields))
    for k, window in enumerate(windows):
        first = k * trained - burn_in  # this window's first step in the stream
        if first < 0:
            continue
        state = network.initial_state(ENVS)
        if first > 0:
            with torch.no_grad():
                state = network(Seen(*(x[:first] for x in whole)), state).state
        assert state.abs().sum() > 0 or first == 0
        np.testing.assert_allclose(window.state, state.numpy(), atol=1e-6)


def test_behavior_prob_is_the_probability_acted_with() -> None:
    windows, network = counting_windows(lstm=False)
    index = torch.tensor((1.0, 2.0, 0.5))
    for window in windows:
        np.testing.assert_array_equal(window.index, np.broadcast_to(np.float32([1.0, 2.0, 0.5]), window.index.shape))
        inputs = Seen(*(torch.from_numpy(getattr(window, name)[:-1]) for name in Seen._fields))
        with torch.no_grad():
            advantage = network(inputs, network.initial_state(ENVS)).head.advantage
            probs = policy.log_probs(advantage, index.expand(*advantage.shape[:2], 3)).exp()
        taken = probs.gather(-1, torch.from_numpy(window.action)[..., None])[..., 0]
        np.testing.assert_allclose(window.behavior_prob, taken.numpy(), rtol=1e-5)
        assert 0 < window.behavior_prob.min() < window.behavior_prob.max() < 1


def test_one_index_per_episode_and_the_return_belongs_to_it() -> None:
    config = tiny_config("Toy/Counting-v0", sequence_steps=7)
    actor, _ = make_actor(make_toy("Toy/Counting-v0", ENVS), config)
    given: dict[int, list[Index]] = {env: [] for env in range(ENVS)}

    def propose(envs: list[int]) -> list[Index]:
        for env in envs:  # each names its environment and episode
            given[env].append((float(env), float(len(given[env])), 0.5))
        return [given[env][-1] for env in envs]

    windows, ended = [], []
    for _ in range(10):
        window, _, episodes = actor.collect(propose, 10**9)
        windows.append(window)
        ended += episodes
    for window in windows:
        # In every row: at a reset the observation is still the ended episode's, and so is λ; the bootstrap row has one.
        np.testing.assert_array_equal(window.index[..., 1], window.obs[..., EPISODE])
        np.testing.assert_array_equal(window.index[..., 0], np.broadcast_to(np.arange(ENVS), window.index.shape[:2]))
    assert any(window.episode_start[-1].any() for window in windows)  # a window that ends just after a reset
    assert any((window.terminated | window.truncated)[-1].any() for window in windows)  # and just after an end
    assert len(ended) > 20
    for episode in ended:
        length = 5 + episode.env
        assert episode.index[0] == episode.env
        assert episode.length_steps == length
        assert episode.episode_return == length * (length - 1) / 2  # 0 + 1 + ... + (length - 1)
        assert episode.truncated == (episode.index[1] % 2 == 1)


@pytest.mark.parametrize("budget", [1, 4, 10, 23, 24, 25])
def test_budget_is_met_exactly(budget: int) -> None:
    config = tiny_config("Toy/Counting-v0", sequence_steps=6)
    actor, _ = make_actor(make_toy("Toy/Counting-v0", ENVS), config)
    window, transitions, ended = actor.collect(lambda envs: [(1.0, 1.0, 0.5)] * len(envs), budget)
    # 4 copies, 6 steps: copy 0 ends after 5 steps and resets in the 6th, so at most 4 · 6 − 1 transitions fit.
    assert window.valid.sum() == transitions == min(budget, 23)
    for episode in ended:
        assert window.valid[episode.length_steps - 1, episode.env]


def test_after_a_window_that_its_budget_cut_nothing_is_burnt_in_that_was_not_played() -> None:
    """10 transitions are 3 of 6 steps: the next window begins new episodes, with its first trained step."""
    config = with_lstm(tiny_config("Toy/Counting-v0", sequence_steps=6, burn_in_steps=4))
    actor, _ = make_actor(make_toy("Toy/Counting-v0", ENVS), config)

    def propose(envs: list[int]) -> list[Index]:
        return [(1.0, 1.0, 0.5)] * len(envs)

    actor.collect(propose, 10)
    window, _, _ = actor.collect(propose, 10**9)
    assert not window.valid[:4].any()
    assert window.episode_start[4].all()
    np.testing.assert_array_equal(window.obs[4:9, 0, CLOCK], [0, 1, 2, 3, 4])
    assert not window.state.any()
    # A budget that ends with the window cuts nothing: the stream goes on.
    actor, _ = make_actor(make_toy("Toy/Counting-v0", ENVS), config)
    first, _, _ = actor.collect(propose, 23)
    second, _, _ = actor.collect(propose, 10**9)
    np.testing.assert_array_equal(second.obs[:4], first.obs[6:10])


def test_an_episode_that_ends_beyond_the_budget_is_not_reported() -> None:
    """Copies end after 5, 6, 7, 8 steps. Five steps are 20 transitions, and in the sixth copy 0 resets: 23. In the
    seventh copy 0's first is the 24th and copy 2's last the 25th: played with either budget, an end only with 25."""
    config = tiny_config("Toy/Counting-v0", sequence_steps=8)
    for budget, expected in ((16, []), (17, [0]), (20, [0]), (21, [0, 1]), (24, [0, 1]), (25, [0, 1, 2])):
        actor, _ = make_actor(make_toy("Toy/Counting-v0", ENVS), config)
        window, _, ended = actor.collect(lambda envs: [(1.0, 1.0, 0.5)] * len(envs), budget)
        assert window.valid.sum() == budget
        assert [episode.env for episode in ended] == expected


def test_pulls_at_its_interval_and_records_the_version() -> None:
    config = tiny_config("Toy/Counting-v0", sequence_steps=8, pull_every_steps=5)
    env = make_toy("Toy/Counting-v0", ENVS)
    actor, network = make_actor(env, config)
    params = {k: v.clone() for k, v in network.state_dict().items()}
    first, _, _ = actor.collect(lambda envs: [(1.0, 1.0, 0.5)] * len(envs), 10**9)
    actor._parameters.push(params, 9)
    second, _, _ = actor.collect(lambda envs: [(1.0, 1.0, 0.5)] * len(envs), 10**9)
    # Steps 0-7 are the first window; pulls fall on steps 0, 5, 10, 15.
    assert (first.version == 0).all()
    assert second.version[:, 0].tolist() == [0, 0, 9, 9, 9, 9, 9, 9]


def test_the_next_lambda_is_drawn_at_the_reset_and_acts_from_the_first_step_on() -> None:
    """Environment 0 plays 5 steps: its reset is step 5, and its second episode begins at row 6."""
    config = tiny_config("Toy/Counting-v0", sequence_steps=1)
    actor, _ = make_actor(make_toy("Toy/Counting-v0", 1), config)
    asked: list[int] = []

    rows: list[list[float]] = []

    def propose(envs: list[int]) -> list[Index]:
        asked.append(len(rows))
        return [(float(len(rows)), 0.0, 1.0)] * len(envs)

    while len(rows) < 8:
        rows.append(actor.collect(propose, 10**9)[0].index[:, 0, 0].tolist())
    assert asked == [0, 5]
    assert rows == [[0, 0]] * 5 + [[0, 5]] + [[5, 5]] * 2


def named_by_episode(count: Counter[int]) -> Propose:
    """λ = (environment, number of its episode, 0.5); ``count`` has the episodes of each that were drawn."""

    def propose(envs: list[int]) -> list[Index]:
        count.update(envs)
        return [(float(env), float(count[env] - 1), 0.5) for env in envs]

    return propose


def assert_lambda_names_the_episode(window: Window, first: int = 0) -> None:
    """In every row that was played: also at a reset, where the observation is the ended episode's, and at row L."""
    np.testing.assert_array_equal(window.index[first:, :, 1], window.obs[first:, :, EPISODE])
    np.testing.assert_array_equal(window.index[first:, :, 0], np.tile(np.arange(ENVS), (len(window.index) - first, 1)))


@pytest.mark.parametrize("trained", [4, 5, 6, 7])
def test_the_last_row_has_the_lambda_of_its_episode(trained: int) -> None:
    """Copy 0 ends with step 4 and resets in step 5. So row L is, by L: inside, final, first, second."""
    config = tiny_config("Toy/Counting-v0", sequence_steps=trained)
    actor, _ = make_actor(make_toy("Toy/Counting-v0", ENVS), config)
    window, _, _ = actor.collect(named_by_episode(Counter()), 10**9)
    assert window.index[-1, 0, 1] == {4: 0, 5: 0, 6: 1, 7: 1}[trained]
    assert window.episode_start[-1, 0] == (trained == 6)
    assert window.terminated[-1, 0] == (trained == 5)
    assert_lambda_names_the_episode(window)


@pytest.mark.parametrize(("burn_in", "trained"), [(4, 6), (6, 6), (9, 4)])
def test_burnt_in_rows_have_the_lambda_of_their_episode(burn_in: int, trained: int) -> None:
    config = with_lstm(tiny_config("Toy/Counting-v0", sequence_steps=trained, burn_in_steps=burn_in))
    actor, _ = make_actor(make_toy("Toy/Counting-v0", ENVS), config)
    propose = named_by_episode(Counter())
    for k in range(12):
        window, _, _ = actor.collect(propose, 10**9)
        assert_lambda_names_the_episode(window, max(0, burn_in - k * trained))


@pytest.mark.parametrize("stop_after", range(1, 8))
def test_an_actor_that_is_resumed_at_a_reset_keeps_both_lambdas_apart(stop_after: int) -> None:
    """Windows of one step: after the 5th copy 0 has ended and not drawn, after the 6th it is at its first step."""
    config = tiny_config("Toy/Counting-v0", sequence_steps=1)
    actor, _ = make_actor(make_toy("Toy/Counting-v0", ENVS), config)
    count: Counter[int] = Counter()
    for _ in range(stop_after):
        actor.collect(named_by_episode(count), 10**9)
    resumed, _ = make_actor(make_toy("Toy/Counting-v0", ENVS), config, seed=1)
    resumed.load_state_dict(deepcopy(actor.state_dict()))
    for _ in range(12):
        assert_lambda_names_the_episode(resumed.collect(named_by_episode(count), 10**9)[0])


def test_the_probability_at_a_reset_is_that_of_the_ended_episodes_lambda() -> None:
    """Episodes take turns between 1/τ = 0, which is uniform over 2 actions, and 1/τ = 9, which is not."""
    config = tiny_config("Toy/Counting-v0", sequence_steps=30)
    actor, _ = make_actor(make_toy("Toy/Counting-v0", ENVS), config)
    count: Counter[int] = Counter()

    def propose(envs: list[int]) -> list[Index]:
        count.update(envs)
        return [(9.0 * (count[env] % 2), 0.0, 1.0) for env in envs]

    window, _, _ = actor.collect(propose, 10**9)
    resets = ~window.valid
    uniform = window.obs[:-1, :, EPISODE] % 2 == 1
    assert (resets & uniform).any()
    assert (resets & ~uniform).any()
    np.testing.assert_array_equal(window.behavior_prob == 0.5, uniform)
