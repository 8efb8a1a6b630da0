"""The environment, and how many copies of it are stepped together."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from gdi.config.checks import not_negative, positive
from gdi.errors import UserError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from gdi.config.whole import Config

# Ids of these families are not made by Gymnasium, which the options of its environments need.
OWN_FAMILIES = ("ALE", "MinAtar", "Toy")


@dataclass(frozen=True)
class EnvConfig:
    """The environment, and how many copies of it are stepped together."""

    id: str = ""
    """Id of the environment, such as CartPole-v1, MinAtar/Breakout-v0, ALE/Pong-v5 or my_env.py:MyEnv. The option is
    --env."""
    num_envs: int = 160
    """Number of environments that are stepped together. Table H "Num. Environments"."""
    max_episode_steps: int = 0
    """Steps after which an episode is truncated; 0 keeps the environment's own limit."""
    protocol: Literal["", "paper", "machado", "saber"] = ""
    """Rules by which Atari games are shown and truncated. "paper" is tab:ale_process."""
    kwargs: tuple[str, ...] = ()
    """Arguments with which the environment is made, such as size=5 sparse=true. Values are TOML. For Atari they are
    settings of the protocol, such as full_action_space=false."""
    wrappers: tuple[str, ...] = ()
    """Wrappers around each copy as module:Name, innermost first, such as gymnasium.wrappers:TimeAwareObservation."""
    action_bins: int = 0
    """Values per dimension of continuous (Box) actions, which become a grid; 0 refuses such actions."""
    processes: int = 0
    """Number of processes that step the environments, for slow ones; 0 steps them in the process of the actor."""
    timeout_seconds: float = 0.0
    """Seconds that one step or reset of an environment may take before the run stops; 0 waits forever."""
    restart_on_error: int = 0
    """Faulty copies of a Gymnasium environment that are replaced by fresh ones before a fault stops the run."""
    given: Any = field(default=None, compare=False, repr=False)
    """The environment itself, given in Python as an object. A run folder holds only its id."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments with which the environment is made, by name."""
        return dict(parse_argument(text) for text in self.kwargs)

    def problems(self, config: Config) -> Iterator[str]:
        if not self.id:
            yield "no environment given: add --env, for example --env CartPole-v1."
        yield from positive(self, "env", "num_envs")
        yield from not_negative(self, "env", "max_episode_steps", "action_bins", "processes")
        yield from not_negative(self, "env", "timeout_seconds", "restart_on_error")
        if self.action_bins == 1:
            yield "--env.action-bins 1 leaves one action: set it to 2 or more."
        try:
            names = [parse_argument(text)[0] for text in self.kwargs]
        except UserError as error:
            yield str(error)
            return
        for name in names:
            if names.count(name) > 1:
                yield f"--env.kwargs {name} is given twice: drop one."
        if self.id.partition("/")[0] in OWN_FAMILIES:
            for option in ("kwargs", "wrappers", "action_bins", "processes", "restart_on_error"):
                changes_protocol = option == "kwargs" and self.protocol
                if getattr(self, option) and not changes_protocol:
                    yield (
                        f"--env.{option.replace('_', '-')} applies only to Gymnasium environments, and {self.id} is "
                        "built in: drop it."
                    )


def parse_argument(text: str) -> tuple[str, Any]:
    """Return name and value of ``name=value``, where the value is TOML."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise UserError(f"--env.kwargs {text!r} is not of the form name=value: write for example size=5.")
    try:
        found = tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        found = {}
    if list(found) != ["value"]:
        raise UserError(
            f"--env.kwargs {text!r}: {value!r} is not a TOML value: write true, 5, 0.5, [1, 2], or text in quotes, as "
            f"in {name}='\"text\"'."
        )
    return name, found["value"]
