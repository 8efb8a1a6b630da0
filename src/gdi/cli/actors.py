"""``gdi actors RUN_DIR N``: more or fewer actors for a run on Ray, while it runs."""

from __future__ import annotations

from pathlib import Path

from gdi.cli.parsing import OneLineParser, whole_number
from gdi.errors import UserError


def run(argv: list[str]) -> int:
    parser = OneLineParser(
        prog="gdi actors",
        description="Change the number of actors of a run on Ray while it runs. New ones start when the cluster has "
        "room for them; those that leave deliver first what they are playing.",
    )
    parser.add_argument("run_dir", type=Path, help="the run's folder, on the machine where gdi train was started")
    parser.add_argument("actors", type=whole_number, help="how many there should be")
    args = parser.parse_args(argv)

    from gdi.runtime.folder import read_config
    from gdi.runtime.lock import lock_holder
    from gdi.runtime.ray.wanted import want_actors

    read_config(args.run_dir)  # a run folder, then
    if args.actors < 1:
        raise UserError(f"a run needs at least one actor, not {args.actors}.")
    holder = lock_holder(args.run_dir)
    if holder is None:
        raise UserError(f"nobody is training {args.run_dir} now: start it with --placement.actors {args.actors}.")
    if holder != "ray":
        raise UserError(f"{args.run_dir} is not being trained on Ray, and only there has a run actors of its own.")
    want_actors(args.run_dir, args.actors)
    print(f"{args.run_dir} will go on with {args.actors} actors; its console tells when they join or leave.")
    return 0
