"""Shared by all tests: one torch thread each, so that parallel test processes do not fight over the cores."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests on Ray first: they are the longest, and last in line they would run on while other processes idle."""
    items.sort(key=lambda item: item.path.name != "test_ray.py")
