"""A real browser for the tests of pages: Chromium from PATH, or the one that set-up installs into .venv."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from select import select
from typing import Any

import pytest

PROBE = Path(__file__).parent / "browser" / "probe.mjs"
# Where `make setup` puts Node's packages. A test machine may have them elsewhere.
HOME = Path(os.environ.get("GDI_BROWSER_HOME", Path(sys.prefix) / "browser"))
INSTALLED = HOME / "chromium" / "chromium"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 120
ERRORS = Path(tempfile.mkdtemp()) / "errors"


@cache
def node() -> str | None:
    """Return Node from this Python's environment, or from PATH."""
    own = Path(sys.prefix) / "bin" / "node"
    return str(own) if own.exists() else shutil.which("node")


@cache
def chromium() -> str | None:
    """Return Chromium from PATH, or the installed one. GDI_BROWSER names another."""
    named = os.environ.get("GDI_BROWSER")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    return found or (str(INSTALLED) if INSTALLED.exists() else None)


def missing() -> str:
    """Return what is missing to open a page, or an empty text."""
    if node() is None:
        return "no node: run make setup, which installs it into .venv"
    if not (HOME / "node_modules" / "playwright-core").is_dir():
        return f"no playwright-core in {HOME}: run make setup"
    return "" if chromium() else "no Chromium on PATH or in .venv: run make setup"


def environment() -> dict[str, str]:
    """Return what the installed Chromium needs on a machine without a desktop: its own libraries and fonts."""
    if chromium() != str(INSTALLED):
        return {}
    libraries = [os.environ.get("LD_LIBRARY_PATH", ""), str(HOME / "chromium" / "al2023" / "lib")]
    return {
        "LD_LIBRARY_PATH": ":".join(filter(None, libraries)),
        "FONTCONFIG_PATH": str(HOME / "chromium" / "fonts"),
    }


def open_pages(pages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Open pages and return what happened in each: see ``browser/probe.mjs``.

    The test fails if there is no browser, unless GDI_NO_BROWSER=1 skips it.
    """
    if os.environ.get("GDI_NO_BROWSER") == "1":
        pytest.skip("GDI_NO_BROWSER=1: no page is opened")
    if reason := missing():
        pytest.fail(f"{reason}, or set GDI_NO_BROWSER=1 to skip the tests that need a browser")
    probe = start_probe()
    assert probe.stdin is not None
    assert probe.stdout is not None
    probe.stdin.write(json.dumps(list(pages)).encode() + b"\n")
    probe.stdin.flush()
    answer = probe.stdout.readline() if select([probe.stdout], [], [], SECONDS)[0] else b""
    if not answer:
        start_probe.cache_clear()
        probe.kill()
        pytest.fail(f"the browser gave no answer: {ERRORS.read_text()[-3000:]}")
    found: list[dict[str, Any]] = json.loads(answer)
    return found


@cache
def start_probe() -> subprocess.Popen[bytes]:
    """Start a browser, which takes two seconds. It serves all tests of this process, and ends with its input."""
    asked = {"home": str(HOME), "browser": chromium(), "env": environment()}
    with ERRORS.open("wb") as errors:
        probe = subprocess.Popen(
            [str(node()), str(PROBE), json.dumps(asked)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
    atexit.register(probe.communicate, timeout=SECONDS)
    return probe
