"""Answers to words that exist but do not fit, such as an environment for a preset, or an option of another kind."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from gdi.cli.settings import KINDS, PLACEMENT, option_name, setting_options
from gdi.config import Config, axes_of, kind_of, kinds
from gdi.errors import UserError, fold
from gdi.placement import PlacementConfig, validate_placement
from gdi.presets import PRESETS, make_config
from gdi.scores.games import find_game


def refuse_environment(word: str) -> None:
    """Raise a UserError if a word that should be a preset is an environment or a run folder."""
    if (env_id := find_environment(word)) is not None:
        raise UserError(f"{word} is an environment, not a preset: use --env {env_id}.")
    if Path(word).is_dir():
        raise UserError(f"{word} is a folder, not a preset: use --run-dir {word} --resume to continue the run in it.")


def find_environment(word: str) -> str | None:
    """Return the environment that a word names, or None. ``cartpole`` names the newest CartPole."""
    if find_game(word) is not None or re.search(r"\w:\w|-v\d+$", word) or re.match("(minatar|ale|toy)/", word, re.I):
        return word
    import gymnasium  # not at the top, because it is needed for this message only

    versions = {
        spec.version or 0: env_id
        for env_id, spec in gymnasium.registry.items()
        if spec.namespace is None and fold(spec.name) == fold(word)
    }
    return versions[max(versions)] if versions else None


def refuse_other_kind(word: str, config: Config) -> None:
    """Raise a UserError for an option that exists, but for another kind of its section."""
    option = word.partition("=")[0]
    for section, known in KINDS.items():
        kind = kind_of(getattr(config, section))
        others = [name for name, cls in known.items() if option in setting_options(cls(), (section,))]
        if others and kind not in others:
            flag = option_name(section)
            raise UserError(
                f"{option} is an option of {flag} {' and '.join(others)}, and this run has {flag} {kind}: drop it."
            )


def refuse_unfit_learner(config: Config) -> None:
    """Raise a UserError if one of our learners cannot use one of our index spaces; name the preset that fits."""
    learner, space = kind_of(config.learner), kind_of(config.index_space)
    if learner not in kinds("learner") or space not in kinds("index_space"):
        return
    if set(config.learner.knobs) != set(axes_of(config.index_space)):
        preset = next(name for name in PRESETS if kind_of(make_config(name).learner) == learner)
        raise UserError(f"--learner {learner} does not work with --index-space {space}: use the preset {preset}.")


def refuse_placement(args: argparse.Namespace, placement: PlacementConfig, config: Config) -> None:
    """Raise a UserError for a placement without Ray, or for one that cannot work."""
    if args.runtime == "ray":
        validate_placement(placement, config)
        return
    for option, given in (("--ray-address", args.ray_address), ("--placement.…", placement != PLACEMENT)):
        if given:
            raise UserError(f"{option} needs --runtime ray: add that, or drop {option}.")
