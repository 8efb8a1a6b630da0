"""The house's rules: a module imports only from layers above its own, and what must not need torch does not."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from gdi.sweep.process import IMPORTS, IMPORTS_FOR

SOURCE = Path(__file__).parents[1] / "src" / "gdi"

# From the first layer to the last; a module may import from its own layer and from those before it.
LAYERS = [
    {"errors", "types", "config", "placement", "clock", "cores", "seeds"},
    {"index_space", "policy", "returns", "rewards", "controller", "data", "scores"},
    {"networks", "envs"},
    {"algorithms"},
    {"learner", "acting"},
    {"evaluation", "iteration"},
    {"runtime"},
    {"report", "presets"},
    {"theory"},  # describes the live presets, and is used by none but the command line
    {"agent", "api"},
    {"cli", "sweep", "__main__"},  # a sweep trains by the code of gdi train
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "gdi":
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("gdi.")}
    return found & set(RANK)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_up_only(path: Path) -> None:
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if own == "__init__":
        return
    for other in imports(path):
        assert RANK[other] <= RANK[own], f"{own} must not import {other}"


TORCHLESS = [
    "gdi",
    "gdi.config",
    "gdi.controller",
    "gdi.data",
    "gdi.iteration",
    "gdi.scores",
    "gdi.theory",
    "gdi.presets",
    "gdi.report.report",
    "gdi.report.page",
    "gdi.cli.main",
]
ON_RAY = [
    "gdi.runtime.ray.services",
    "gdi.runtime.ray.collector_worker",
]  # each in a process of its own, which starts without torch


def test_imports_without_torch() -> None:
    """One process imports all of them, and names the first that brings torch."""
    modules = TORCHLESS + (ON_RAY if find_spec("ray") else [])
    code = (
        "import sys, importlib\n"
        f"for module in {modules}:\n"
        "    importlib.import_module(module)\n"
        "    assert 'torch' not in sys.modules, f'{module} imports torch'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_a_new_process_imports(tmp_path: Path) -> None:
    """Importing changes no global random state. Only a video needs OpenCV, FFmpeg and a window.

    A run needs neither a compiler nor a plotting library. Each takes a second, in every process that trains or plays.
    One process shows all this, because a new one takes two seconds itself.
    """
    run = ["train", "--env=MinAtar/Breakout-v0", "--steps=200", f"--run-dir={tmp_path / 'run'}", "--run.threads=1"]
    modules = ["gdi.cli.evaluate", "gdi.cli.play", "gdi.evaluation.video", *IMPORTS, *IMPORTS_FOR["MinAtar/"]]
    code = (
        # Other libraries first: what they do at import is theirs.
        "import importlib, random, sys, numpy as np, torch, gymnasium, rich.progress, tyro, tensorboardX\n"
        "def state(): return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()\n"
        "before = state()\n"
        f"for module in {modules}: importlib.import_module(module)\n"
        "assert state() == before\n"
        "for_videos = {'cv2', 'imageio_ffmpeg', 'ale_py', 'pygame'} & set(sys.modules)\n"
        "assert not for_videos, for_videos\n"
        "from gdi.cli.main import main\n"
        f"assert main({[*run, '--evaluation.episodes=1']}) == 0\n"
        "slow = {'torch._dynamo', 'torch._inductor', 'seaborn', 'matplotlib', 'pandas'} & set(sys.modules)\n"
        "assert not slow, slow\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
