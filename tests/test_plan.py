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
from gdi.runtime import memory_plan as planning
from gdi.runtime.local import build
from gdi.runtime.memory_plan import GIB, MemoryPlan, check_fits, plan_memory, saved_bytes_per_step
from helpers import change, make_network, tiny_config

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
    real = planning.available_memory_bytes()
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
