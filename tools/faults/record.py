"""The record of a campaign: one line per trial, so that it can be resumed, and one table."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

OUTCOMES = ("survived", "lost", "traceback", "hang")


@dataclass(frozen=True)
class Trial:
    """One trial; ``detail`` says what was done, and what came of it if it did not survive."""

    part: str
    number: int
    outcome: str
    detail: str = ""


class Record:
    """The trials of a campaign, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.trials: list[Trial] = []
        self.read()

    def read(self) -> None:
        """Read the file, to which other processes may have added trials of other parts."""
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        self.trials = [Trial(**json.loads(line)) for line in lines]

    def count(self, part: str) -> int:
        return sum(trial.part == part for trial in self.trials)

    def add(self, trial: Trial) -> None:
        self.trials.append(trial)
        with self._path.open("a") as file:
            file.write(json.dumps(asdict(trial)) + "\n")

    @property
    def is_clean(self) -> bool:
        return all(trial.outcome == "survived" for trial in self.trials)

    def table(self) -> str:
        """Return the table as Markdown."""
        rows = ["| part | tried | survived | lost | tracebacks | hangs |", "|---|---:|---:|---:|---:|---:|"]
        for part in dict.fromkeys(trial.part for trial in self.trials):
            counts = Counter(trial.outcome for trial in self.trials if trial.part == part)
            cells = [f"{counts.total():,}", *(f"{counts[outcome]:,}" for outcome in OUTCOMES)]
            rows.append(f"| {part} | {' | '.join(cells)} |")
        return "\n".join(rows)

    def failures(self) -> list[str]:
        return [f"{t.part} {t.number}: {t.outcome}: {t.detail}" for t in self.trials if t.outcome != "survived"]
