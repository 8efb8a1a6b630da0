"""How fast a configuration trains, what the time goes to, and how far that is from what its kernels alone would allow.

The ceiling runs the network's own layers (convolutions, dense layer, LSTM) forward for every step that is acted and
forward and backward for every step that is trained, on inputs prepared before: no environment, no frames to stack, no
bytes to convert, no heads, losses, optimizer or log. What is reachable is less: the same with the environments stepped
by random actions, and still nothing else. Both run in the same process and the same arrangement of threads, in turns
with the training they are compared to, so that a machine that slows down for a while slows all.
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

from gdi.config import Config
from gdi.cores import keep_torch_threads, use_threads
from gdi.envs import EnvSpec, make_env
from gdi.networks import AgentNetwork
from gdi.networks.agent import Encoder
from gdi.networks.precision import arithmetic
from gdi.networks.torsos import ConvTorso, FirstConvolution
from gdi.runtime.local import LocalSystem, build

ENDLESS_STEPS = 10**12
PARTS = ("environment", "inference", "data", "learning", "rest")


@dataclass(frozen=True)
class Bench:
    """What was measured; shares are of the time of the loop's parts, which sum to 1 also where they overlap."""

    steps_per_second: float
    frames_per_second: float
    ceiling_steps_per_second: float
    fraction_of_ceiling: float
    reachable_steps_per_second: float
    fraction_of_reachable: float
    shares: dict[str, float]
    bottleneck: str


def bench(config: Config, seconds: float, rounds: int = 5) -> Bench:
    """Train for about ``seconds`` in ``rounds``, in turns with as much of the bare kernels, without and with games."""
    config = replace(config, steps=ENDLESS_STEPS)
    system = build(config)
    try:
        return _bench(system, seconds / rounds, rounds)
    finally:
        system.close()


def _bench(system: LocalSystem, seconds: float, rounds: int) -> Bench:
    config, parts = system.config, system.parts
    iterations = system.iterate(ENDLESS_STEPS)
    for _ in range(config.learner.replay_span_windows + 2):  # until every window is trained as often as later ones
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
            steps = config.env.num_envs * config.learner.sequence_steps
            ceiling.append(_rate(lambda: run_bare(_nothing), steps, seconds))
            reachable.append(_rate(lambda: run_bare(step_environments), steps, seconds))
    total = sum(spent.values())
    shares = {name: value / total for name, value in spent.items()}
    return Bench(
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
    """A function that steps all environments once, by random actions drawn before."""
    env = make_env(config.env, threads=use_threads(config.run.threads))
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
    """A function that does the kernels of one window: its acting, and as much training as a window brings.

    Its argument is done beside them at each step that is acted.
    """
    learner, num_envs = config.learner, config.env.num_envs
    encoders = [encoder for encoder in network.encoders if isinstance(encoder, Encoder)]
    chunk = chunk_sequences or learner.batch_size_sequences
    acted = [_prepared(encoder, spec, 1, num_envs) for encoder in encoders]
    burnt = [_prepared(encoder, spec, learner.burn_in_steps, chunk) for encoder in encoders]
    trained = [_prepared(encoder, spec, learner.sequence_steps + 1, chunk) for encoder in encoders]
    parameters = [p for encoder in encoders for p in encoder.parameters()]
    # Chunks that a window brings; what is left over is done in a later window.
    owed = 0.0

    def act(beside: Callable[[], None]) -> None:
        with torch.inference_mode():
            for _ in range(learner.sequence_steps):
                for encoder, inputs in zip(encoders, acted, strict=True):
                    _forward(encoder, inputs)
                beside()

    def train(_: int) -> None:
        if learner.burn_in_steps:
            with torch.no_grad():
                for encoder, inputs in zip(encoders, burnt, strict=True):
                    _forward(encoder, inputs)
        outputs = [_forward(encoder, inputs) for encoder, inputs in zip(encoders, trained, strict=True)]
        torch.autograd.grad(outputs, parameters, [torch.ones_like(output) for output in outputs], allow_unused=True)

    with (
        ThreadPoolExecutor(learner.workers, "bare-learner", keep_torch_threads, (1,)) as workers,
        ThreadPoolExecutor(1, "bare-actor", keep_torch_threads, (actor_threads,)) as actor,
    ):

        def window(beside: Callable[[], None]) -> None:
            nonlocal owed
            owed += num_envs * learner.replay / chunk
            now, owed = int(owed), owed - int(owed)
            acting = actor.submit(act, beside) if config.run.overlap else None
            list((workers.map if learner.workers > 1 else map)(train, range(now)))
            act(beside) if acting is None else acting.result()
            if parameters[0].is_cuda:
                torch.cuda.synchronize()

        yield window


def _prepared(encoder: Encoder, spec: EnvSpec, steps: int, batch: int) -> tuple[Tensor, Tensor]:
    """On the network's device: what the first layer takes, and what the core takes beside the torso's features."""
    shape = (max(steps, 1) * batch, *spec.observation_shape)
    obs = torch.from_numpy(np.zeros(shape, spec.observation_dtype))
    torso, device = encoder.torso, next(encoder.parameters()).device
    if isinstance(torso, ConvTorso):
        first = next(iter(torso.convolutions.children()))
        with arithmetic(encoder.precision, obs.device):
            obs = first.prepare(obs) if isinstance(first, FirstConvolution) else first(obs)
    else:
        obs = obs.float()
    return obs.to(device), torch.zeros(max(steps, 1), batch, encoder.num_actions + 1, device=device)


def _forward(encoder: Encoder, inputs: tuple[Tensor, Tensor]) -> Tensor:
    x: Tensor
    x, others = inputs
    torso = encoder.torso
    with arithmetic(encoder.precision, x.device):
        if isinstance(torso, ConvTorso):
            for number, layer in enumerate(torso.convolutions.children()):
                if number:
                    x = layer(x)
                elif isinstance(layer, FirstConvolution):
                    x = layer.convolve(x)
            x = torch.relu(torso.dense(x.permute(0, 2, 3, 1).flatten(1)))
        else:
            x = torso(x)
    x = x.float().view(*others.shape[:2], -1)
    if encoder.core is None:
        return x
    output: Tensor = encoder.core.lstm(torch.cat([x, others], dim=-1))[0]
    return output
