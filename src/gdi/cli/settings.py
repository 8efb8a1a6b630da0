"""The settings of a config as command-line options: their names, their short and old names, and their kinds."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass, replace
from typing import Any

from gdi.config import KIND_SECTIONS, MOVED, SECTIONS, Config, kind_of, kinds
from gdi.errors import UserError, did_you_mean
from gdi.placement import PlacementConfig

PLACEMENT = PlacementConfig()
# The sections whose kind can be chosen, and their kinds.
KINDS = {name: kinds(name) for name in KIND_SECTIONS if len(kinds(name)) > 1}


@dataclass(frozen=True)
class ShortOption:
    """A short name for a setting that many users change."""

    option: str
    section: str
    field: str
    metavar: str
    help: str


SHORT = (
    ShortOption("--lr", "optimizer", "learning_rate", "RATE", "peak learning rate of the optimizer"),
    ShortOption("--num-envs", "env", "num_envs", "N", "number of environments that are stepped together"),
    ShortOption("--device", "run", "device", "DEVICE", "device for the networks: auto, cpu or cuda"),
    ShortOption("--threads", "run", "threads", "N", "number of CPU threads, or 0 for all cores"),
)


def option_name(*path: str) -> str:
    """Return ``--section.field`` for the names of a section and a field."""
    return f"--{'.'.join(path)}".replace("_", "-")


SHORT_NAMES = {short.option: option_name(short.section, short.field) for short in SHORT}
# Options of fields that moved to another section: old name -> current name.
RENAMED = {option_name(old): option_name(new) for old, new in MOVED.items()}

# Names that other programs give to our options. They are suggested, not accepted. If there are several options, the
# first one that the run has is suggested.
SYNONYMS = {
    "--environment": ("--env",),
    "--env-id": ("--env",),
    "--max-steps": ("--steps",),
    "--log-dir": ("--run-dir",),
    "--tensorboard-log": ("--run-dir",),
    "--gamma": ("--learner.discount",),
    "--clip-range": ("--learner.clip",),
    "--clip-range-vf": ("--learner.value-clip",),
    "--vf-coef": ("--learner.value-loss-scale", "--learner.v-loss-scale"),
    "--target-update-interval": ("--learner.target-period-updates",),
    "--ent-coef": ("--index-space.entropy-cost.fixed-value",),
    "--epsilon": ("--controller.end", "--index-space.epsilon.fixed-value"),
    "--exploration-initial-eps": ("--controller.start",),
    "--exploration-final-eps": ("--controller.end",),
    "--max-grad-norm": ("--optimizer.clip-norm",),
    "--n-steps": ("--learner.n-steps", "--data.sequence-steps"),
    "--n-epochs": ("--data.replay",),
    "--buffer-size": ("--data.capacity-transitions",),
    "--learning-starts": ("--data.learn-start-transitions",),
    "--train-freq": ("--data.period-transitions",),
    "--gradient-steps": ("--data.updates",),
    "--eval-freq": ("--evaluation.every-steps",),
    "--n-eval-episodes": ("--evaluation.episodes",),
}


def synonyms(known: Collection[str]) -> dict[str, str]:
    """Return the option of this run for each name of other programs that has one."""
    found = {name: next((option for option in ours if option in known), None) for name, ours in SYNONYMS.items()}
    return {name: option for name, option in found.items() if option is not None}


def with_dashes(words: list[str]) -> list[str]:
    """Return the words with dashes for underscores in the names of options."""
    parts = (word.partition("=") for word in words)
    return [
        "".join((name.replace("_", "-") if name.startswith("--") else name, equals, value))
        for name, equals, value in parts
    ]


def full_names(words: list[str]) -> list[str]:
    """Return the words with the full, current name for each short or old option."""
    names = {**RENAMED, **SHORT_NAMES}
    parts = (word.partition("=") for word in words)
    return ["".join((names.get(name, name), equals, value)) for name, equals, value in parts]


@contextmanager
def as_typed(words: list[str]) -> Iterator[None]:
    """Let a UserError name an option as the user typed it: --lr, not --optimizer.learning-rate."""
    typed = {word.partition("=")[0] for word in with_dashes(words)}
    try:
        yield
    except UserError as error:
        message = str(error)
        for short, full in {**SHORT_NAMES, "--total-timesteps": "--steps"}.items():
            if short in typed:
                message = re.sub(rf"{re.escape(full)}(?![\w.-])", short, message)
        raise UserError(message) from None


def make_sections(config: Config) -> Any:
    """Return the sections of a config as one dataclass of their concrete kinds, for the options of those only.

    The placement is in it, although it is not part of a run's config. A run may be resumed with a different placement.
    """
    own = [(name, type(getattr(config, name))) for name in SECTIONS]
    cls = make_dataclass("Sections", [*own, ("placement", PlacementConfig, field(default=PLACEMENT))], frozen=True)
    return cls(**{name: getattr(config, name) for name in SECTIONS})


def setting_options(section: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the name of every option that changes a field of this dataclass, also of those inside it."""
    for f in fields(section):
        value, here = getattr(section, f.name), (*path, f.name)
        if not f.compare:
            continue
        if is_dataclass(value):
            yield from setting_options(value, here)
        else:
            yield option_name(*here)
            if isinstance(value, bool):
                yield option_name(*path, f"no_{f.name}")


def choose_kinds(config: Config, words: list[str], prog: str) -> tuple[Config, list[str]]:
    """Take ``--controller uniform`` and the like out of the words; each swaps in the defaults of that kind.

    The old form, with ``.kind`` after the section, works, too. Return the config with these kinds, and the other words.
    """
    rest = list(words)
    for section, known in KINDS.items():
        flag = option_name(section)
        for option in (flag, f"{flag}.kind"):
            while (kind := _take_option(rest, option, prog)) is not None:
                if kind not in known:
                    raise UserError(f"unknown {flag} {kind!r}.{did_you_mean(kind, known)} Kinds: {', '.join(known)}.")
                if kind != kind_of(getattr(config, section)):
                    config = replace(config, **{section: known[kind]()})
    return config, rest


def _take_option(words: list[str], option: str, prog: str) -> str | None:
    """Remove ``option VALUE`` or ``option=VALUE`` from the words and return the value, or None if it is absent."""
    for i, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name != option:
            continue
        if equals:
            del words[i]
            return value
        if i + 1 == len(words):
            raise UserError(f"{option} needs a value. See {prog} --help-all.")
        value = words[i + 1]
        del words[i : i + 2]
        return value
    return None
