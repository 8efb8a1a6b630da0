"""Shared by all tests: one torch thread each, one Ray a process, and an order that keeps two workers busy."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import gdi
from helpers import tiny_config

LONGEST_FIRST = ("ray", "kill", "atari_tables")  # the others are left for whoever is done


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first, so that no worker is left alone with it at the end.

    Before all come those that need a Ray of their own: they would end the one that the others share.
    """

    def rank(item: pytest.Item) -> int:
        if "own_ray" in getattr(item, "fixturenames", ()):
            return -1
        marks = [item.get_closest_marker(name) for name in LONGEST_FIRST]
        return next((i for i, mark in enumerate(marks) if mark), len(marks))

    items.sort(key=rank)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """So that parallel test processes do not fight over the cores."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of ``tiny_config()`` that nothing disturbed. For comparison only: do not write to it."""
    torch.set_num_threads(1)
    return gdi.train(tiny_config(), tmp_path_factory.mktemp("whole") / "run").run_dir


@pytest.fixture(scope="session")
def flag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that tells ray_worlds whether to hang."""
    return tmp_path_factory.mktemp("worlds") / "flag"


@pytest.fixture
def shared_ray(flag: Path) -> None:
    """One Ray for most tests of a process; training connects to what is there. Its workers know ray_worlds."""
    import ray

    if not ray.is_initialized():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RAY_WORLDS_FLAG", str(flag))
            patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
            priority = {"worker_niceness": 0}  # as a run's own Ray has it
            ray.init(address="local", num_cpus=8, include_dashboard=False, log_to_driver=False, _system_config=priority)


@pytest.fixture
def own_ray() -> None:
    """No Ray is there: the test starts its own."""
    import ray

    ray.shutdown()


@pytest.fixture(scope="session", autouse=True)
def _end_of_ray() -> Iterator[None]:
    yield
    if (ray := sys.modules.get("ray")) is not None:
        ray.shutdown()
