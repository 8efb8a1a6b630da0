"""The house's rules: a module imports only from layers above its own, and what must not need torch does not."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("module", TORCHLESS + ON_RAY)
def test_imports_without_torch(module: str) -> None:
    if module in ON_RAY:
        pytest.importorskip("ray")
    code = f"import sys, {module}; assert 'torch' not in sys.modules, 'torch was imported'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_changes_no_global_random_state() -> None:
    # Other libraries first: what they do at import is theirs.
    code = (
        "import random, numpy as np, torch, gymnasium, minatar, rich.progress, tyro, tensorboardX\n"
        "def state(): return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()\n"
        "before = state()\n"
        "import gdi.api, gdi.cli.train\n"
        "assert state() == before"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
