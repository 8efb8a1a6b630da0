"""Nonsense for every command and every field of the config; the fields come from the config itself."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

from faults.child import Ended, run_child
from faults.damage import stopped
from faults.record import Trial
from faults.runs import MINATAR, judge
from gdi.cli.main import COMMANDS, main
from gdi.cli.settings import KINDS, make_sections, option_name, setting_options
from gdi.presets import PRESETS, make_config

VALUES = (
    *("", "0", "-0", "-1", "1", "2", "3", "7", "0.5", "1e-300", "1e9", "1e12", "1e30", "1e308", "-1e308", "nan", "inf"),
    *("-inf", "1" + "0" * 30, "9" * 5000, "true", "None", "auto", "cpu", "cuda:99", "linear", "a", "-", "--", "--json"),
    *(
        "é",
        "\ud800",
        "\x1b[31m",
        "a\nb",
        "../..",
        "/",
        "/dev/null",
        "x" * 300,
        "1,2",
        "1 2",
        "[1]",
        "{}",
        "%s",
        "$HOME",
    ),
)
SCORES = (
    *(
        "game,score\npong,{}\n",
        "{}\n",
        "pong,{}\n",
        '{{"pong": {}}}',
        '{{"{}": 3}}',
        '[{{"game": "pong", "score": {}}}]',
    ),
    *("game,seed_0,{}\npong,1,2\n", "{},pong\n1,2\n", "# {}\n", "game,score,agent\npong,1,{}\n", "\x00{}", "\ufeff{}"),
)
# The options of every command but train, whose settings come from the config.
OPTIONS = {
    "evaluate": ("--episodes", "--seed", "--index", "--video", "--video-episodes", "--best", "--json", "--trust"),
    "scores": ("--against", "--common", "--show", "--reference", "--frames", "--replicates", "--confidence", "--seed"),
    "report": ("--output", "--format", "--baseline", "--tsne"),
    "watch": ("--web", "--port"),
    "sweep": ("--env", "--presets", "--seeds", "--steps", "--minutes", "--retry", "--backend"),
    "theory": ("--figures", "--seed", "--trials"),
    "algorithms": ("--json",),
    "play": ("--seed", "--protocol", "--video"),
    "bench": ("--seconds", "--env", "--scale"),
    "actors": ("--json",),
    "presets": ("--json",),
    "envs": ("--json",),
    "version": ("--json",),
}
TINY = [
    *("--steps=80", "--num-envs=4", "--network.hidden-units=8", "--evaluation.episodes=1", "--threads=1"),
    "--evaluation.every-steps=1000000",
]
SECONDS = 20.0  # a large but allowed size takes long; then Ctrl-C must end it


def fuzzed_inputs(number: int, rng: random.Random, work: Path) -> Iterator[Trial]:
    """Give one command nonsense."""
    folder = work / "victim"
    folder.mkdir()
    words = train_words(rng, folder) if rng.random() < 0.7 else command_words(rng, work)
    ended = run_child(lambda: run_in(folder, words), work / "output", SECONDS)
    outcome, detail = judge(ended, wrong(ended))
    shown = " ".join(word if len(word) < 60 else f"{word[:57]}..." for word in words)
    yield Trial("fuzzed inputs", number, outcome, ascii(f"gdi {shown}. {detail}"))


def run_in(folder: Path, words: list[str]) -> int:
    """Run a command in a folder of its own, because nonsense may name a file to write."""
    os.chdir(folder)
    return main(words)


def train_words(rng: random.Random, folder: Path) -> list[str]:
    """Return a tiny training run with one or two settings of its config replaced by nonsense."""
    preset = rng.choice(list(PRESETS))
    config = make_config(preset, MINATAR)
    options = [
        *setting_options(make_sections(config)),
        *map(option_name, KINDS),
        "--env",
        "--scale",
        "--steps",
        "--seed",
    ]
    words = ["train", preset, "--env", MINATAR, "--run-dir", str(folder / "run"), *TINY]
    for _ in range(rng.choice((1, 1, 2))):
        words += [rng.choice(options), rng.choice(VALUES)]
    return words


def command_words(rng: random.Random, work: Path) -> list[str]:
    """Return any other command with nonsense."""
    command = rng.choice([name for name in COMMANDS if name != "train"])
    words = [command]
    if command == "scores":
        path = work / "victim" / rng.choice(("scores.csv", "scores.json", "scores"))
        path.write_text(rng.choice(SCORES).format(rng.choice(VALUES)), errors="surrogatepass")
        words.append(str(path))
    elif command in ("evaluate", "actors", "report", "watch"):
        run_dir = shutil.copytree(stopped("gdi-i3", work), work / "victim" / "run")
        words += [str(run_dir)] if rng.random() < 0.8 else [rng.choice(VALUES)]
        words += {"evaluate": ["--episodes=1"], "actors": [rng.choice(VALUES)]}.get(command, [])
    elif command == "theory":
        words.append("--trials=1")
    elif command == "bench":
        words += ["--env=CartPole-v1", "--seconds=1", *TINY[1:3]]
    elif command == "play":
        words += [rng.choice(VALUES), "--video", str(work / "victim" / "video.mp4")]
    for _ in range(rng.choice((0, 1, 1, 2))):
        words += [rng.choice(OPTIONS[command]), rng.choice(VALUES)]
    return words


def wrong(ended: Ended) -> str:
    """Return what a command did that it should not have done: it works, or says one line, or heeds Ctrl-C."""
    if ended.code in (0, 130, 141):
        return "an escape code reached the terminal" if "\x1b" in ended.out else ""
    if ended.code == 1 and "diverged" in ended.err:
        return ""
    if ended.code not in (1, 2):
        return f"exit code {ended.code}: {ended.err[-300:]}"
    last = ended.err.rstrip("\n").rpartition("\n")[2]
    return "" if last.startswith("gdi: ") else f"exit code {ended.code} without a line: {ended.err[-300:]}"
