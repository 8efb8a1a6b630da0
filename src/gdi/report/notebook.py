"""The report of a run inside a notebook."""

from __future__ import annotations

import html
from pathlib import Path

from gdi.report.page import page
from gdi.report.report import report
from gdi.report.runs import check_run_folder, read_run

FRAME = "width: 100%; height: 85vh; border: 1px solid #8888"


class RunView:
    """A run that a notebook shows as its report, read anew each time the cell runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __repr__(self) -> str:
        return f"{self.folder}: {read_run(self.folder).state.text}"

    def _repr_html_(self) -> str:
        """Return the page in a frame of its own, which may run its script and nothing else."""
        document = html.escape(page(report([read_run(self.folder)])))
        return f'<iframe title="report" sandbox="allow-scripts" style="{FRAME}" srcdoc="{document}"></iframe>'


def watch(run_dir: str | Path) -> RunView:
    """Return the report of a run, finished or not, for a cell of a notebook."""
    folder = Path(run_dir)
    check_run_folder(folder)
    return RunView(folder)
