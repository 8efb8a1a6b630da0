"""How another process finds a class again: the module that it names, and the folders where modules are looked for."""

from __future__ import annotations

import sys
from pathlib import Path


def importable_module(cls: type) -> str:
    """Return the module from which another process imports a class: that of the running script is its file's name."""
    if cls.__module__ != "__main__":
        return cls.__module__
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:  # python -m package.module
        return str(spec.name)
    file = Path(getattr(main, "__file__", None) or "")
    return file.stem if file.suffix == ".py" and file.stem.isidentifier() else "__main__"


def add_to_path(folder: Path) -> None:
    """Let modules of a folder be imported, behind all others."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
