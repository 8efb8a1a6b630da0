"""The memory plan: arithmetic that can be followed, chunks that keep it, and a refusal before anything is made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gdi.config import Config
from gdi.envs.base import EnvSpec
from gdi.errors import UserError
from gdi.presets import make_config
from gdi.runtime import factories as making
from gdi.runtime import machine
from gdi.runtime.local import build
from gdi.runtime.memory_plan import GIB, MemoryPlan, check_fits, plan_memory, saved_bytes_per_step
from helpers import change, make_network, tiny_config
from systems import small

ATARI = EnvSpec((84, 84, 4), np.dtype(np.uint8), 18, frames_per_step=4, frame_stack=4)
FRAME = 84 * 84


def plan_for(config: Config) -> MemoryPlan:
    return plan_memory(config, ATARI, make_network(config, ATARI.observation_shape, ATARI.num_actions, 0))


def test_the_paper_scale_fits_into_8_gb() -> None:
    config = make_config("gdi-h3", "breakout", scale="paper")
    plan, num_windows = plan_for(config), config.data.held_windows(160)
    assert plan.total_bytes < 8e9
    # Every frame once: 160 environments, 3 + 40 + 80 + 1 frames a window, not 4 times that.
    window = 160 * 124 * FRAME
    assert num_windows == 2 + 1 + 2
    assert num_windows * window < plan.bytes_by_purpose["sequences"] < 1.3 * num_windows * window
    assert 0 < plan.chunk_sequences < 64
    assert plan.bytes_by_purpose["learning"] < 2.2 * GIB


def test_a_small_batch_is_one_chunk_and_workers_share_it() -> None:
    config = make_config("gdi-i3", "breakout", scale="atari-cpu")
    batch = config.data.batch_size_sequences
    one = change(config, workers=1)
    two = change(config, workers=2)
    assert plan_for(one).chunk_sequences == 0
    assert plan_for(two).chunk_sequences == batch // 2


@pytest.mark.parametrize(("precision", "number_bytes"), [("float32", 4), ("bfloat16", 2)])
def test_saved_bytes_are_those_of_the_layers(precision: str, number_bytes: int) -> None:
    """impala-shallow without an LSTM: what the backward pass needs, counted by hand in numbers."""
    config = make_config("gdi-i3", "breakout", scale="atari-cpu")
    config = replace(
        config,
        network=replace(config.network, torso="impala-shallow", lstm_units=0, hidden_units=256),
        run=replace(config.run, precision=precision),
    )
    network = make_network(config, ATARI.observation_shape, ATARI.num_actions, 0)
    numbers = 84 * 84 * 4 + 20 * 20 * 16 + 9 * 9 * 32 + 256  # pixels, two maps, the dense layer (ReLU in place)
    assert saved_bytes_per_step(network, ATARI, 3) == pytest.approx(number_bytes * numbers, rel=0.05)


def test_what_does_not_fit_is_refused_in_one_line_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    real = machine.available_memory_bytes()
    assert real is None or real > 1 << 28
    original = making.make_env

    def counting(config: object, num_envs: int | None = None, threads: int = 0) -> object:
        made.append(num_envs or 0)
        return original(config, num_envs, threads)  # type: ignore[arg-type]

    monkeypatch.setattr(making, "make_env", counting)
    config = tiny_config()
    with pytest.raises(UserError, match=r"does not fit.*Lower --env\.num-envs") as caught:
        build(replace(config, env=replace(config.env, num_envs=10**8)))
    assert "\n" not in str(caught.value)
    assert made == [1]


def atari_dqn(capacity: int) -> Config:
    return change(make_config("dqn", "breakout", scale="paper"), capacity_transitions=capacity)


def test_a_replay_of_a_million_atari_transitions_fits_into_9_gb() -> None:
    """Slots of 8 environments and 128 steps, each with 4 more frames; one slot more than the capacity needs."""
    plan = plan_for(atari_dqn(1_000_000))
    slots = 977 + 1  # ⌈1,000,000 / 1,024⌉, and the one that is being written
    assert plan.bytes_by_purpose["replay"] == slots * 8 * ((128 + 4) * FRAME + 128 * 64)
    assert plan.bytes_by_purpose["replay"] < 7.5e9
    assert plan.total_bytes < 9e9


def test_each_learner_of_a_group_holds_a_copy_of_the_memory() -> None:
    config = atari_dqn(100_000)
    network = make_network(config, ATARI.observation_shape, ATARI.num_actions, 0)
    one, three = (plan_memory(config, ATARI, network, learners).bytes_by_purpose["replay"] for learners in (1, 3))
    assert three == 3 * one


def test_the_plan_is_what_the_store_holds() -> None:
    """Arrays of a real run, whose small capacity is full, against the plan: a little more, and not much."""
    config = small("dqn")
    system = build(config)
    for _ in system.iterate(1200):
        pass
    held = system.parts.store.num_bytes
    system.close()
    assert held <= system.plan.bytes_by_purpose["replay"] < 1.3 * held


def test_a_memory_beyond_the_machine_is_refused_with_the_number_that_fits() -> None:
    plan = plan_for(atari_dqn(50_000_000))
    with pytest.raises(UserError, match=r"Set --data\.capacity-transitions \d+, which fits") as caught:
        check_fits(plan, 16 * GIB)
    fits = int(str(caught.value).split("capacity-transitions ")[1].split(",")[0])
    check_fits(plan_for(atari_dqn(fits)), 16 * GIB)
    with pytest.raises(UserError, match="does not fit"):
        check_fits(plan_for(atari_dqn(fits + 5000)), 16 * GIB)
    assert plan_for(atari_dqn(fits)).total_bytes > 15.9 * GIB
    with pytest.raises(UserError, match=r"Lower --env\.num-envs\.$"):
        check_fits(plan, GIB // 4)


def test_the_limit_is_the_plan() -> None:
    plan = plan_for(make_config("gdi-i3", "breakout", scale="atari-cpu"))
    check_fits(plan, plan.total_bytes)
    check_fits(plan, None)
    with pytest.raises(UserError, match="GiB"):
        check_fits(plan, plan.total_bytes - 1)


def test_counting_leaves_no_trace() -> None:
    config = tiny_config()
    spec = EnvSpec((10, 10, 4), np.dtype(bool), 6)
    network = make_network(config, spec.observation_shape, 6, 0)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    state = torch.get_rng_state()
    saved_bytes_per_step(network, spec, 3)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert all(p.grad is None for p in network.parameters())
    assert torch.equal(state, torch.get_rng_state())
