"""``gdi envs``: list the built-in environments and their reference scores."""

from __future__ import annotations

import json
from dataclasses import asdict

from rich.box import SIMPLE_HEAD
from rich.table import Table

from gdi.cli.parsing import JSON_HELP, OneLineParser
from gdi.cli.printing import report_console
from gdi.envs.minatar import IDS as MINATAR_IDS
from gdi.envs.names import atari_id
from gdi.envs.protocols import PROTOCOLS
from gdi.scores.games import GAMES
from gdi.scores.reference import load_reference


def run(argv: list[str]) -> int:
    """Print the built-in environments."""
    parser = OneLineParser(prog="gdi envs", description="List the built-in environments and their reference scores.")
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    args = parser.parse_args(argv)
    reference = load_reference("paper")
    games = [
        {
            "game": game,
            "id": atari_id(game),
            "random": float(reference.random[i]),
            "human": float(reference.human[i]),
            "world_record": float(reference.world_record[i]),
        }
        for i, game in enumerate(GAMES)
    ]
    if args.json:
        protocols = {name: asdict(protocol) for name, protocol in PROTOCOLS.items()}
        print(json.dumps({"atari": games, "protocols": protocols, "minatar": MINATAR_IDS}))
        return 0
    console = report_console()
    # Without a frame the table fits into 80 columns, so that no record loses its last digits.
    table = Table(
        title="Atari: the 57 games, and the paper's scores", title_justify="left", title_style="bold", box=SIMPLE_HEAD
    )
    table.add_column("--env", style="bold", no_wrap=True)
    table.add_column("also", no_wrap=True)
    for column in ("random", "human", "record"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in games:
        scores = (f"{row[name]:,.10g}" for name in ("random", "human", "world_record"))
        table.add_row(str(row["game"]), str(row["id"]), *scores)
    console.print(table)
    console.print("\n[bold]Protocols[/] (--env.protocol; each run and each score names its protocol)")
    for protocol in PROTOCOLS.values():
        console.print(f"  {protocol.name:<8} {protocol.summary}", soft_wrap=True)
    console.print("  all      all 18 actions, no life information, no reward clipping, 84x84 gray, repeat 4, stack 4")
    console.print(f"\n[bold]MinAtar[/]  {', '.join(MINATAR_IDS[:5])} (-v1: minimal actions)", soft_wrap=True)
    console.print("[bold]Gymnasium[/]  any id, class or file: CartPole-v1, my_env.py:MyEnv", soft_wrap=True)
    return 0
