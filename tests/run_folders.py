"""Hand-made run folders, whose logs tests know number by number."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from gdi.config import Config, config_to_json
from gdi.presets import make_config

BLOCKS = {"inverse_tau_1": 50, "inverse_tau_2": 50, "epsilon": 10}


def hand_config(preset: str = "gdi-i3", env: str = "MinAtar/Breakout-v0", steps: int = 10_000) -> Config:
    """Return a config with linear axes of 50, 50 and 10 blocks."""
    config = make_config(preset, env, scale="paper", steps=steps, seed=3)
    return replace(config, env=replace(config.env, id=env))


def train_line(steps: int, best: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    """Return a line whose belief gives the best block of each axis one half of the probability."""
    line: dict[str, Any] = {"kind": "train", "steps": steps, "frames": steps, "updates": steps // 100, "episodes": 1}
    for axis, block in (best or {}).items():
        count = BLOCKS[axis]
        value = [float(place == block) for place in range(count)]
        probability = [0.5 if place == block else 0.5 / (count - 1) for place in range(count)]
        line |= {
            f"controller/{axis}/block_value": value,
            f"controller/{axis}/block_count": [1.0] * count,
            f"controller/{axis}/block_probability": probability,
            f"controller/{axis}/best_block": float(block),
            f"controller/{axis}/top_block_probability": 0.5,
        }
    clock = {"seconds": steps / 1000, "steps_per_second": 1000.0, "frames_per_second": 1000.0, "shares": {}}
    return {**line, "episode/return": steps / 100, **more, "clock": clock}


def write_run(folder: Path, lines: list[dict[str, Any]], config: Config | None = None) -> Path:
    """Write a run folder with these log lines, and an episode of return steps / 100 at each."""
    config = config or hand_config()
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "config.json").write_text(config_to_json(config))
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    names = ("steps", "env", *BLOCKS, "episode_return", "length_steps", "truncated")
    rows = [f"{line['steps']},0,1,2,0.5,{line['steps'] / 100},10,0" for line in lines if line["kind"] == "train"]
    (folder / "episodes.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    return folder


def append(folder: Path, text: str) -> None:
    with (folder / "metrics.jsonl").open("a") as file:
        file.write(text)
