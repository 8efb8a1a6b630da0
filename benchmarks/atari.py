"""Atari training speed: GDI-I3 compared with sb3-contrib's RecurrentPPO, and with its own ceiling.

Equal for all: Breakout under the `paper` protocol stepped by the same code, 16 environments, the torso of Mnih et al.
2015 with 512 dense units, an LSTM of 256, and two training passes per sample. GDI-I3 is measured in float32 and, if
the CPU has it, with a bfloat16 torso. Each variant has its own ceiling. RecurrentPPO, in float32, is measured twice.
One variant has our settings (one LSTM, 20-step sequences, 320 transitions per gradient step), the other its defaults.

Each side trains in its own process, several times in turns, so a machine that slows down for a while slows all sides.
A measurement is the median of five slices, and the result is the ratio of the medians. Two things differ. Ours makes
the C library keep freed memory, as every run does, and writes no log here. PPO logs, and also trains on reset steps.
The ceiling is that of ``gdi bench``: our network's kernels with nothing around them.

    python benchmarks/atari.py [--seconds 40] [--rounds 3] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time

import torch

from interleaved import SPEED, machine, median, run_interleaved

GAME = "breakout"
ENVS, ROLLOUT, BATCH_SEQUENCES, PASSES = 16, 20, 16, 2
SLICES = 5
KEYS = (SPEED, "ceiling_steps_per_second", "fraction_of_ceiling", "fraction_of_reachable")
LABELS = {
    "gdi": "gdi-i3",
    "gdi-bfloat16": "gdi-i3, bfloat16 torso",
    "ppo": "RecurrentPPO, our settings",
    "ppo-defaults": "RecurrentPPO, its defaults",
}
GDI = [
    *("bench", "gdi-i3", "--env", GAME, "--scale", "atari-cpu", "--env.num-envs", str(ENVS)),
    *("--network.torso", "nature", "--network.hidden-units", "512", "--network.lstm-units", "256"),
    *("--data.batch-size-sequences", str(BATCH_SEQUENCES), "--data.sequence-steps", str(ROLLOUT)),
    *("--data.replay", str(PASSES), "--data.replay-span-windows", str(PASSES), "--json"),
    *("--run.workers", str(os.cpu_count() or 1), "--run.overlap"),
]


def time_ppo(seconds: float, *, defaults: bool) -> dict[str, float]:
    """Return the steps per second of RecurrentPPO.learn, with our settings or the library's defaults."""
    from sb3_contrib import RecurrentPPO

    from gdi.config import EnvConfig
    from peers import Sb3VecEnv, silence

    games = Sb3VecEnv(EnvConfig("ALE/Breakout-v5", ENVS, protocol="paper"))
    torch.set_num_threads(os.cpu_count() or 1)
    model = RecurrentPPO(
        "CnnLstmPolicy",
        games,
        n_epochs=PASSES,
        policy_kwargs={
            "features_extractor_kwargs": {"features_dim": 512},
            "lstm_hidden_size": 256,
            # One LSTM, as in ours. By default actor and critic have one each.
            **({} if defaults else {"net_arch": [], "shared_lstm": True, "enable_critic_lstm": False}),
        },
        **({} if defaults else {"n_steps": ROLLOUT, "batch_size": ROLLOUT * BATCH_SEQUENCES}),
        device="cpu",
        seed=0,
    )
    silence(model)
    model.learn(4 * ENVS * ROLLOUT)  # warm up before the measurement
    rates = []
    for _ in range(SLICES):
        before, begin = games.transitions, time.perf_counter()
        while time.perf_counter() - begin < seconds / SLICES:
            model.learn(4 * ENVS * ROLLOUT, reset_num_timesteps=False)
        rates.append((games.transitions - before) / (time.perf_counter() - begin))
    return {SPEED: statistics.median(rates)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=40, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each side, in turns")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--agent", choices=["ppo", "ppo-defaults"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.agent:
        print(json.dumps(time_ppo(args.seconds, defaults=args.agent == "ppo-defaults")))
        return
    from gdi.networks.precision import has_native_bfloat16

    seconds = ["--seconds", str(args.seconds)]
    ours = {"gdi": ["-m", "gdi.cli.main", *GDI, *seconds]}
    if has_native_bfloat16(torch.device("cpu")):
        ours["gdi-bfloat16"] = [*ours["gdi"], "--run.precision", "bfloat16"]
    theirs = {agent: [__file__, "--agent", agent, *seconds] for agent in ("ppo", "ppo-defaults")}
    found = run_interleaved({**ours, **theirs}, args.rounds)
    medians = {
        agent: {key: round(median(found, agent, key), 3) for key in KEYS if key in found[agent][0]} for agent in found
    }
    times = {agent: {peer: medians[agent][SPEED] / medians[peer][SPEED] for peer in theirs} for agent in ours}
    if args.json:
        print(json.dumps({"medians": medians, "times_as_fast": times, "rounds": found, "machine": machine()}))
        return
    print(f"{GAME}, {ENVS} environments, Nature torso, LSTM 256, {PASSES} passes per sample, {machine()}; steps/s:")
    for agent, numbers in medians.items():
        print(f"  {LABELS[agent]:<42}{numbers[SPEED]:>6,.0f}")
        for peer, ratio in times.get(agent, {}).items():
            print(f"    times {LABELS[peer]:<36}{ratio:>6.2f}")
        if agent in ours:
            print(f"    ceiling of its kernels                  {numbers['ceiling_steps_per_second']:>6,.0f}")
            print(f"    reached                                 {numbers['fraction_of_ceiling']:>6.0%}")
            print(f"    reached of kernels and games together   {numbers['fraction_of_reachable']:>6.0%}")


if __name__ == "__main__":
    main()
