"""Every label of the paper's equations, algorithms, assumptions, theorems and tables leads to a live symbol."""

from __future__ import annotations

import re
import sys
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
MAP = tomllib.loads((ROOT / "docs" / "paper_map.toml").read_text(encoding="utf-8"))
SECTIONS = ("equations", "algorithms", "theory", "tables")

# All \label{...} of the paper that name an equation, algorithm, assumption, theorem, lemma or table.
LABELS = {
    "eq_accmulate_reward", "alg:GDI", "asp:1", "asp:2", "asp:3", "asp:4", "thm:1st_gdi", "thm:2nd_gdi",
    "equ: soft epsilon policy space", "tab:atari_results", "tab: abbreviation", "tab: notation", "Equ: retrace",
    "Equ: vtrace", "eq:UTTC_R1", "lemma:dct_inc_R1", "eq:Zm_inc", "eq:uvw_R1", "eq:v_exist", "lemma:dct_R1",
    "thm:cts_R1", "lemma:dct_Rp", "thm:cts_Rp", "lemma:perfdiff", "Equ: i3 casa equ", "Equ: i3 soft entropy", "alg:i3",
    "Equ: h3 casa equ", "Equ: h3 soft entropy", "alg:h3", "eq:bandit_eval", "eq:bandit_update", "eq:bandit_score",
    "alg:bva", "Tab: multivariate evaluation system", "tab:ale_process", "tab:fixed_model_hyperparameters_atari",
    "Tab: full performance comparison", "tab:ablation_setting",
}  # fmt: skip
SYMBOLS = [(label, symbol) for section in SECTIONS for label, symbols in MAP[section].items() for symbol in symbols]


def test_every_label_is_mapped_once() -> None:
    mapped = [label for section in (*SECTIONS, "without_code") for label in MAP[section]]
    assert sorted(mapped) == sorted(LABELS)


@pytest.mark.parametrize(("label", "symbol"), SYMBOLS)
def test_symbol_is_live(label: str, symbol: str) -> None:
    module, _, name = symbol.partition(":")
    found = reduce(getattr, name.split("."), import_module(module))
    assert found is not None


def test_labels_cited_in_the_code_exist() -> None:
    """A docstring that cites a label of the paper must cite one that is there."""
    cited = set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        cited |= set(re.findall(r"\b(?:alg|asp|thm|lemma|eq):\w+", text))
    assert cited <= LABELS, cited - LABELS
    assert len(cited) >= 10
