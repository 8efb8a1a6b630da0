"""``gdi actors RUN_DIR N``: change the number of actors of a run on Ray, while it runs."""

from __future__ import annotations

from pathlib import Path

from gdi.cli.parsing import OneLineParser, whole_number
from gdi.errors import UserError


def run(argv: list[str]) -> int:
    """Request a number of actors from a running process."""
    parser = OneLineParser(
        prog="gdi actors",
        description="Change the number of actors of a run on Ray while it runs. New actors start when the cluster has "
        "room for them. Actors that leave deliver their current window first.",
    )
    parser.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="folder of the run, where gdi train was started")
    parser.add_argument("actors", type=whole_number, metavar="N", help="number of actors to run")
    args = parser.parse_args(argv)

    from gdi.runtime.folder import read_config
    from gdi.runtime.lock import lock_holder
    from gdi.runtime.ray.actor_count import request_actor_count

    read_config(args.run_dir)  # raises if this is not a run folder
    if args.actors < 1:
        raise UserError(f"a run needs at least one actor, not {args.actors}: give a larger number.")
    holder = lock_holder(args.run_dir)
    if holder is None:
        raise UserError(f"{args.run_dir} is not being trained: start it with --placement.actors {args.actors}.")
    if holder != "ray":
        raise UserError(f"{args.run_dir} is not being trained on Ray: only runs on Ray have separate actors.")
    request_actor_count(args.run_dir, args.actors)
    print(f"{args.run_dir} will continue with {args.actors} actors. Its console reports when they join or leave.")
    return 0
