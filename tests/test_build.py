"""Building a run: what was begun is closed again if a later part fails."""

from __future__ import annotations

import multiprocessing
import threading
from dataclasses import replace
from typing import Any

import pytest

from gdi.errors import UserError
from gdi.runtime import factories, local
from helpers import tiny_config


@pytest.mark.parametrize("failing", ["make_evaluator", "make_player"])
def test_a_failed_build_leaves_no_process_and_no_thread(monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    """The actor has environments in processes, and the learner a pool of threads."""

    def fail(*parts: Any, **more: Any) -> None:
        raise UserError("it fails")

    monkeypatch.setattr(local if failing == "make_evaluator" else factories, failing, fail)
    config = tiny_config("CartPole-v1")
    config = replace(config, env=replace(config.env, processes=2), run=replace(config.run, workers=2))
    before = threading.active_count()
    with pytest.raises(UserError, match="it fails"):
        local.build(config)
    assert multiprocessing.active_children() == []
    assert threading.active_count() == before
