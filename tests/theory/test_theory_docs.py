"""docs/theory.md and the code name the same things."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from gdi.theory import counterexamples, paper_errors
from gdi.theory.claims import CLAIMS
from gdi.theory.learning import SETTINGS

PAGE = Path(__file__).parents[2] / "docs" / "theory.md"
TEXT = PAGE.read_text(encoding="utf-8")
SYMBOLS = sorted(set(re.findall(r"`([a-z_]+)\.([a-z_]+)`", TEXT)))


@pytest.mark.parametrize(("module", "name"), SYMBOLS, ids=lambda part: str(part))
def test_symbols_exist(module: str, name: str) -> None:
    assert hasattr(import_module(f"gdi.theory.{module}"), name)


def test_the_page_names_symbols() -> None:
    assert len(SYMBOLS) > 10


@pytest.mark.parametrize("key", [*counterexamples.SEARCHES, *paper_errors.SEARCHES])
def test_every_counterexample_is_explained(key: str) -> None:
    assert f"`{key}`" in TEXT


def test_every_claim_is_in_the_table() -> None:
    for claim in CLAIMS:
        assert claim.statement.replace("|", "\\|") in TEXT, claim.key


def test_every_setting_is_explained() -> None:
    for setting in SETTINGS:
        assert f"**{setting.__name__}**" in TEXT


@pytest.mark.parametrize("picture", re.findall(r"\]\((images/[^)]+)\)", TEXT))
def test_pictures_exist(picture: str) -> None:
    assert (PAGE.parent / picture).exists()
