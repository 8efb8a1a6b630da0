"""The response time of `gdi scores` for 57 games, and for 5 seeds of them with 2,000 replicates.

python benchmarks/scores.py
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gdi.scores.games import GAMES


def seconds(*words: str) -> float:
    begin = time.perf_counter()
    command = [sys.executable, "-m", "gdi.cli.main", "scores", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        one, five = Path(folder) / "one.csv", Path(folder) / "five.csv"
        for path, seeds in ((one, 1), (five, 5)):
            rows = [f"{game},{seed},{rng.uniform(0, 1e4):.1f}" for game in GAMES for seed in range(seeds)]
            path.write_text("\n".join(["game,seed,score", *rows]) + "\n")
        seconds(str(one))  # fill the disk cache
        print(f"57 games, no bootstrap                {seconds(str(one)):6.2f} s")
        print(f"57 games x 5 seeds, 2,000 replicates  {seconds(str(five), '--replicates', '2000'):6.2f} s")


if __name__ == "__main__":
    main()
