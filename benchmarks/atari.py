"""Atari training speed: GDI-I3 beside sb3-contrib's RecurrentPPO, in one run, in turns, and beside its own ceiling.

Equal for both: Breakout under the `paper` protocol stepped by the same code, 16 environments, the torso of Mnih et al.
2015 with 512 dense units, one LSTM of 256, every sample trained twice, 320 transitions a gradient step. Each trains in
a process of its own, several times in turns, so that a machine that slows down for a while slows both; the ratio of
the medians is the result. The ceiling is that of ``gdi bench``: our own network's kernels with nothing around them.

    python benchmarks/atari.py [--seconds 40] [--rounds 3] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from typing import Any

GAME = "breakout"
ENVS, ROLLOUT, BATCH_SEQUENCES, PASSES = 16, 20, 16, 2
GDI = [
    *("bench", "gdi-i3", "--env", GAME, "--scale", "atari-cpu", "--env.num-envs", str(ENVS)),
    *("--network.torso", "nature", "--network.hidden-units", "512", "--network.lstm-units", "256"),
    *("--learner.batch-size-sequences", str(BATCH_SEQUENCES), "--learner.sequence-steps", str(ROLLOUT)),
    *("--learner.replay", str(PASSES), "--learner.replay-span-windows", str(PASSES), "--json"),
]


def time_ppo(seconds: float) -> dict[str, float]:
    """Steps per second of RecurrentPPO.learn."""
    from sb3_contrib import RecurrentPPO

    from gdi.config import EnvConfig
    from peers import Games

    games = Games(EnvConfig("ALE/Breakout-v5", ENVS, protocol="paper"))
    rollout = 4 * ROLLOUT
    model = RecurrentPPO(
        "CnnLstmPolicy",
        games,
        n_steps=rollout,
        batch_size=ROLLOUT * BATCH_SEQUENCES,
        n_epochs=PASSES,
        policy_kwargs={
            "features_extractor_kwargs": {"features_dim": 512},
            "net_arch": [],
            "lstm_hidden_size": 256,
            "shared_lstm": True,  # one LSTM, as ours
            "enable_critic_lstm": False,
        },
        device="cpu",
        seed=0,
    )
    model.learn(ENVS * rollout)  # first times are not training
    before, begin = games.transitions, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        model.learn(ENVS * rollout, reset_num_timesteps=False)
    return {"steps_per_second": (games.transitions - before) / (time.perf_counter() - begin)}


def measured(agent: str, seconds: int) -> dict[str, Any]:
    if agent == "gdi":
        command = [sys.executable, "-m", "gdi.cli.main", *GDI, "--seconds", str(seconds)]
    else:
        command = [sys.executable, __file__, "--agent", agent, "--seconds", str(seconds)]
    result: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=40, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each side, in turns")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--agent", choices=["ppo"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.agent:
        print(json.dumps(time_ppo(args.seconds)))
        return
    found: dict[str, list[dict[str, Any]]] = {"gdi": [], "ppo": []}
    for number in range(args.rounds):
        for agent, results in found.items():
            results.append(measured(agent, args.seconds))
            print(f"round {number + 1}: {agent} {results[-1]['steps_per_second']:,.0f} steps/s", file=sys.stderr)

    def median(agent: str, key: str) -> float:
        return statistics.median(result[key] for result in found[agent])

    ours, theirs = median("gdi", "steps_per_second"), median("ppo", "steps_per_second")
    result = {
        "gdi_steps_per_second": round(ours, 1),
        "recurrent_ppo_steps_per_second": round(theirs, 1),
        "ratio": round(ours / theirs, 2),
        "ceiling_steps_per_second": round(median("gdi", "ceiling_steps_per_second"), 1),
        "fraction_of_ceiling": round(median("gdi", "fraction_of_ceiling"), 3),
        "rounds": found,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
    }
    if args.json:
        print(json.dumps(result))
        return
    print(f"{GAME}, {ENVS} environments, Nature torso, LSTM 256, {PASSES} passes per sample, {result['machine']}")
    print(f"  gdi-i3                     {ours:>8,.0f} steps/s")
    print(f"  sb3-contrib RecurrentPPO   {theirs:>8,.0f} steps/s")
    print(f"  ratio                      {ours / theirs:>8.2f} x")
    print(f"  ceiling of our kernels     {result['ceiling_steps_per_second']:>8,.0f} steps/s")
    print(f"  reached                    {result['fraction_of_ceiling']:>8.0%}")


if __name__ == "__main__":
    main()
