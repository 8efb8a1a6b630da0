"""The runs that a user names: run folders, folders of run folders, and folders of a benchmark's records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gdi.errors import UserError
from gdi.report.records import read_records, record_files
from gdi.report.runs import CONFIG, Run, find_run_folders, is_run_folder, read_run
from gdi.runtime.run_log import METRICS


def collect_runs(paths: Sequence[Path]) -> list[Run]:
    """Return all runs in these paths, each once. A path without any raises UserError."""
    found: dict[Path, Run] = {}
    recorded: dict[Path, list[Run]] = {}
    for path in paths:
        if not path.is_dir():
            raise UserError(f"{path} is not a folder: name a run folder, or a folder of them.")
        folders = [path] if is_run_folder(path) else find_run_folders(path)
        files = [] if folders else record_files(path)
        if not folders and not files:
            raise UserError(f"{path} has no run: a run folder has {CONFIG} and {METRICS}.")
        for folder in folders:
            if folder.resolve() not in found:
                found[folder.resolve()] = read_run(folder)
        for file in files:
            if file.resolve() not in recorded:
                recorded[file.resolve()] = read_records(file)
    return [*found.values(), *(run for runs in recorded.values() for run in runs)]
