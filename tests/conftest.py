"""Shared by all tests: one torch thread each, so that parallel test processes do not fight over the cores."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
