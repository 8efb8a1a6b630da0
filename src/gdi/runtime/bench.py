"""Measures how fast a configuration trains, where the time goes, and how far that is from two limits.

The ceiling passes every acted step forward through the network, and every trained row forward and backward. With a
target network it also passes one row per slice forward through that. It uses prepared inputs. It has no environment,
frame stacking, policy, losses, optimizer or log. The reachable speed is lower, because it also steps the environments
by random actions, and still does nothing else.

A sampled replay begins to learn after 1,000 transitions at the latest, so that the warm-up takes seconds.

Both run in the same process with the same threads, interleaved with the training that they are compared with. A machine
that slows down for a while therefore slows down all three.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import cycle

import numpy as np
import torch
from torch import Tensor

from gdi.algorithms import make_algorithm
from gdi.config import Config
from gdi.cores import set_torch_threads, thread_count
from gdi.envs import EnvSpec, make_env
from gdi.index_space import make_index_space
from gdi.networks import AgentNetwork, Seen
from gdi.runtime.local import LocalSystem, build

NO_STEP_LIMIT = 10**12
PARTS = ("environment", "inference", "data", "learning", "rest")


@dataclass(frozen=True)
class BenchResult:
    """The measured speeds, and the share of time of each stage of the loop.

    Shares sum to 1 even if stages overlap.
    """

    steps_per_second: float
    frames_per_second: float
    ceiling_steps_per_second: float
    fraction_of_ceiling: float
    reachable_steps_per_second: float
    fraction_of_reachable: float
    shares: dict[str, float]
    bottleneck: str


def bench(config: Config, seconds: float, rounds: int = 5) -> BenchResult:
    """Measure training and its two limits in turns, each for about ``seconds``, over ``rounds`` rounds."""
    config = replace(config, steps=NO_STEP_LIMIT, data=config.data.early_start())
    system = build(config)
    try:
        return _bench(system, seconds / rounds, rounds)
    finally:
        system.close()


def _bench(system: LocalSystem, seconds: float, rounds: int) -> BenchResult:
    config, parts = system.config, system.parts
    iterations = system.iterate(NO_STEP_LIMIT)
    # Warm up until each window is trained as often as all later ones.
    for _ in range(config.data.settled_windows(config.env.num_envs)):
        next(iterations)
    ours: list[float] = []
    ceiling: list[float] = []
    reachable: list[float] = []
    spent = dict.fromkeys(PARTS, 0.0)
    chunk, threads = system.plan.chunk_sequences, parts.actor_threads
    with (
        stepped_environments(config) as step_environments,
        bare_window(config, system.spec, parts.learner.network, chunk, threads) as run_bare,
    ):
        run_bare(step_environments)
        for _ in range(rounds):
            parts.clock.lap()
            begin, before = time.perf_counter(), parts.steps
            while time.perf_counter() - begin < seconds:
                next(iterations)
            took, shares = parts.clock.lap()
            ours.append((parts.steps - before) / took)
            for name, share in shares.items():
                spent[name] += share * took
            steps = config.env.num_envs * config.data.sequence_steps
            ceiling.append(_rate(lambda: run_bare(_nothing), steps, seconds))
            reachable.append(_rate(lambda: run_bare(step_environments), steps, seconds))
    total = sum(spent.values())
    shares = {name: value / total for name, value in spent.items()}
    return BenchResult(
        steps_per_second=statistics.median(ours),
        frames_per_second=statistics.median(ours) * system.spec.frames_per_step,
        ceiling_steps_per_second=statistics.median(ceiling),
        fraction_of_ceiling=statistics.median(a / b for a, b in zip(ours, ceiling, strict=True)),
        reachable_steps_per_second=statistics.median(reachable),
        fraction_of_reachable=statistics.median(a / b for a, b in zip(ours, reachable, strict=True)),
        shares=shares,
        bottleneck=max(shares, key=lambda name: shares[name]),
    )


def _rate(run: Callable[[], None], steps: int, seconds: float) -> float:
    begin, runs = time.perf_counter(), 0
    while (took := time.perf_counter() - begin) < seconds or not runs:
        run()
        runs += 1
    return runs * steps / took


def _nothing() -> None:
    pass


@contextmanager
def stepped_environments(config: Config) -> Iterator[Callable[[], None]]:
    """Yield a function that steps all environments once, with random actions drawn in advance."""
    env = make_env(config.env, threads=thread_count(config.run.threads))
    rng = np.random.default_rng(config.seed)
    actions = cycle(rng.integers(env.spec.num_actions, size=(1000, env.num_envs)))
    env.reset(config.seed)
    try:

        def step() -> None:
            env.step(next(actions))

        yield step
    finally:
        env.close()


@contextmanager
def bare_window(
    config: Config, spec: EnvSpec, network: AgentNetwork, chunk_sequences: int, actor_threads: int
) -> Iterator[Callable[[Callable[[], None]], None]]:
    """Yield a function that passes one window through the network: its acting, and its share of training.

    The function calls its argument at each acted step.
    """
    data, num_envs, workers_wanted = config.data, config.env.num_envs, config.run.workers
    chunk = chunk_sequences or data.batch_size_sequences
    num_components = len(make_index_space(config.index_space).names)

    def prepared(steps: int, batch: int) -> tuple[Seen, Tensor]:
        return _prepared(network, spec, num_components, steps, batch)

    algorithm = make_algorithm(config)
    rows = 1 if algorithm.rows == "first" else (data.slice_steps or data.sequence_steps) + 1
    acted, trained = prepared(1, num_envs), prepared(rows, chunk)
    bootstrap = prepared(1, chunk) if algorithm.target_period_updates else None
    burnt = prepared(data.burn_in_steps, chunk) if data.burn_in_steps else None
    parameters = list(network.parameters())
    # The remaining fraction of a chunk carries over to a later window.
    owed = 0.0

    def act(beside: Callable[[], None]) -> None:
        with torch.inference_mode():
            for _ in range(data.sequence_steps):
                network(*acted)
                beside()

    def train(_: int) -> None:
        if burnt is not None:
            with torch.no_grad():
                network(*burnt)
        if bootstrap is not None:
            with torch.no_grad():
                network(*bootstrap)  # the target network has the same layers
        outputs = list(network(*trained).head)
        torch.autograd.grad(outputs, parameters, [torch.ones_like(output) for output in outputs], allow_unused=True)

    with (
        ThreadPoolExecutor(workers_wanted, "bare-learner", set_torch_threads, (1,)) as workers,
        ThreadPoolExecutor(1, "bare-actor", set_torch_threads, (actor_threads,)) as actor,
    ):

        def window(beside: Callable[[], None]) -> None:
            nonlocal owed
            owed += num_envs * data.sequence_steps * data.slices_per_transition / chunk
            now, owed = int(owed), owed - int(owed)
            acting = actor.submit(act, beside) if config.run.overlap else None
            list((workers.map if workers_wanted > 1 else map)(train, range(now)))
            act(beside) if acting is None else acting.result()
            if parameters[0].is_cuda:
                torch.cuda.synchronize()

        yield window


def _prepared(network: AgentNetwork, spec: EnvSpec, num_components: int, steps: int, batch: int) -> tuple[Seen, Tensor]:
    """Return zeroed network inputs with stacked frames, and a state, on the network's device."""
    device = next(network.parameters()).device
    obs = torch.from_numpy(np.zeros((steps, batch, *spec.observation_shape), spec.observation_dtype))
    seen = Seen(
        obs,
        torch.zeros(steps, batch, dtype=torch.bool),
        torch.zeros(steps, batch, dtype=torch.int64),
        torch.zeros(steps, batch),
        torch.zeros(steps, batch, num_components),
        torch.zeros(steps, batch, spec.vector_width),
        torch.zeros(steps, batch, 0, dtype=torch.bool),
    )
    return Seen(*(x.to(device) for x in seen)), network.initial_state(batch).to(device)
