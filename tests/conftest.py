"""Shared fixtures, with one torch thread per test, one Ray per process, and long tests first."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch
from hypothesis import settings

import gdi
from helpers import stop_after, tiny_config
from sweep_runs import SWEEP_STEPS, begin_sweep, drive, write_plan

# A busy machine must not turn a slow moment into a failure.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

LONGEST_FIRST = ("ray", "kill", "long", "atari_tables")  # other tests fill the gaps


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest tests first, so that no worker ends alone with them.

    Tests that need their own Ray come before all others, because they would end the shared one.
    """

    def rank(item: pytest.Item) -> int:
        if "own_ray" in getattr(item, "fixturenames", ()):
            return -1
        marks = [item.get_closest_marker(name) for name in LONGEST_FIRST]
        return next((i for i, mark in enumerate(marks) if mark), len(marks))

    items.sort(key=rank)


def pytest_collection_finish() -> None:
    """Leave what is imported and collected by now out of the garbage collections, which would walk it again and again.

    It is a million objects that live to the end, and walking them takes a tenth of the time of the tests.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)  # of what is made from now on, a small part is alive at any time


@pytest.fixture(scope="session", autouse=True)
def _own_state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let gdi remember nothing about these runs in the user's home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_wait_for_the_disk() -> Iterator[None]:
    """Let no write wait for the disk, which takes a small run as long as its training.

    Only a power cut needs this wait, and no test can make one. A killed process loses nothing without it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Use one torch thread, whatever a run asks for, so that parallel test processes do not compete for cores."""
    torch.set_num_threads(1)
    set_num_threads = torch.set_num_threads
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "set_num_threads", lambda count: set_num_threads(1))
        yield


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an undisturbed run of ``tiny_config()``.

    It is for comparison only: do not write to it.
    """
    torch.set_num_threads(1)
    return gdi.train(tiny_config(), tmp_path_factory.mktemp("whole") / "run").run_dir


@pytest.fixture(scope="session")
def stopped_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the same run, stopped at about 800 of its 1,200 steps. Copy it before you change it."""
    torch.set_num_threads(1)
    return gdi.train(tiny_config(), tmp_path_factory.mktemp("stopped") / "run", console=stop_after(800)).run_dir


@pytest.fixture(scope="session")
def whole_sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an undisturbed sweep. It is for comparison only: do not write to it."""
    folder = tmp_path_factory.mktemp("whole")
    plan = write_plan(folder, SWEEP_STEPS)
    begin_sweep(plan, folder / "sweep")
    code, out, err = drive(str(plan), "--out", str(folder / "sweep"), "-j", "2")
    assert code == 0, out + err
    return folder / "sweep"


@pytest.fixture(scope="session")
def flag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file that tells ray_envs whether to hang."""
    return tmp_path_factory.mktemp("envs") / "flag"


@pytest.fixture(scope="session")
def _rays() -> Iterator[ExitStack]:
    """Hold the shared Ray, if there is one. It is closed with the stack."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def shared_ray(flag: Path, _rays: ExitStack) -> None:
    """Start one Ray for most tests of a process, to which training connects.

    Its workers can import ray_envs. Like a run's own Ray it needs a token, so Ray writes none into the user's home.
    """
    import ray

    from gdi.runtime.ray.cluster import private_ray

    if not ray.is_initialized():
        _rays.enter_context(private_ray())
        _rays.callback(ray.shutdown)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("RAY_ENVS_FLAG", str(flag))
            patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
            priority = {"worker_niceness": 0}  # as in a run's own Ray
            ray.init(address="local", num_cpus=8, include_dashboard=False, log_to_driver=False, _system_config=priority)


@pytest.fixture
def own_ray(_rays: ExitStack) -> None:
    """Shut the shared Ray down, so that the test starts its own."""
    _rays.close()
