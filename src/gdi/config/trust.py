"""Which modules a config from a file may import.

Importing a module runs its code. A run folder from elsewhere can name any module, so the name alone allows nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

from gdi.config.imports import importable_module
from gdi.errors import UserError


class NotTrustedError(UserError):
    """A file names a module that its reader has not allowed."""


@dataclass(frozen=True)
class Trust:
    """The modules that a file may import: those that the caller names too, or all of them."""

    everything: bool = False
    modules: frozenset[str] = frozenset()
    classes: dict[str, type] = field(default_factory=dict)  # the caller's own kinds, by ``module:Class``

    @classmethod
    def of(cls, classes: Iterable[type] = (), modules: Iterable[str] = (), *, everything: bool = False) -> Trust:
        """Return the trust of a caller who passes these classes and names these modules."""
        # A class of the running script is recorded by the script's name. Early folders say ``__main__``.
        own = {
            f"{name}:{one.__qualname__}": one for one in classes for name in (one.__module__, importable_module(one))
        }
        named = frozenset(filter(None, modules)) | {one.__module__ for one in own.values()}
        return cls(everything, named, own)

    def require(self, name: str, what: str, module: str) -> None:
        """Raise NotTrustedError unless the file may import ``module``; ``what`` is the value of its field ``name``."""
        if self.everything or module in self.modules:
            return
        raise NotTrustedError(
            f"config.json: {name} is {what} of the module {module}, which is not part of gdi. Opening it runs that "
            "module's code: say --trust (in Python trust=True, or pass the class) if you trust its source."
        )

    def require_environment(self, env_id: str) -> None:
        """Raise UserError unless the file may import the module of an id such as ``module:Name-v0``.

        A module that this process has imported already runs no new code.
        """
        module = module_of(env_id)
        if module and module not in sys.modules:
            self.require("env.id", f"the environment {env_id.partition(':')[2]}", module)

    def require_wrapper(self, name: str) -> None:
        """Raise UserError unless the file may import the module of a wrapper; those of Gymnasium are no question."""
        module = module_of(name)
        if module and module.partition(".")[0] != "gymnasium":
            self.require("env.wrappers", f"the wrapper {name.partition(':')[2]}", module)


def module_of(env_id: str) -> str:
    """Return the module in an environment id such as ``module:Name-v0``, or an empty string."""
    return env_id.partition(":")[0] if ":" in env_id else ""
