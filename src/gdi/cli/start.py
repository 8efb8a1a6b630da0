"""The config that ``gdi train`` starts from: that of a stored run, or that of a preset."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from gdi.config import Config, validate
from gdi.envs.names import canonical_env_id
from gdi.errors import UserError
from gdi.presets import DEFAULT_PRESET, make_config


def starting_config(args: argparse.Namespace, preset: str | None) -> Config:
    """Return the config before settings: the stored one of a resumed run, or that of the preset."""
    stored = read_stored(args)
    if stored is None:
        return make_config(
            preset or DEFAULT_PRESET, args.env or "", scale=args.scale, steps=args.steps, seed=args.seed or 0
        )
    if preset is not None:
        make_config(preset)  # reports an unknown name as such, not as a difference
    return replace(
        stored,
        preset=preset or stored.preset,
        scale=args.scale or stored.scale,
        env=replace(stored.env, id=canonical_env_id(args.env) if args.env else stored.env.id),
        steps=stored.steps if args.steps is None else args.steps,
        seed=stored.seed if args.seed is None else args.seed,
    )


def read_stored(args: argparse.Namespace) -> Config | None:
    """Return the config of the run to resume, or None for a new run. Raise UserError if there is no such run."""
    folder: Path | None = args.run_dir
    if folder is None:
        if args.resume:
            raise UserError("--resume needs a run to continue: add --run-dir with its folder.")
        return None
    from gdi.runtime.folder import CONFIG, read_config

    if args.resume and folder.is_dir() and any(folder.iterdir()):
        return validate(read_config(folder, trust=args.trust))
    if args.env is not None:
        return None
    if (folder / CONFIG).is_file():
        raise UserError(f"--run-dir {folder} already holds a run: add --resume to continue it.")
    if args.resume:
        state = "is empty" if folder.is_dir() else "does not exist"
        raise UserError(f"--run-dir {folder} {state}: check the name, or add --env to start a run there.")
    return None
