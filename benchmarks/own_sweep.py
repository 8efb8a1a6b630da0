"""``gdi sweep`` with the agents of ``benchmarks.own_agents`` among its presets.

    python -m benchmarks.own_sweep benchmarks/seaquest.toml
    python -m benchmarks.own_sweep status runs/seaquest

It takes the words of ``gdi sweep``. Each process of a job imports this module, and so knows the presets as well.
"""

from __future__ import annotations

import sys

from benchmarks.own_agents import AGENTS
from gdi.cli.main import main
from gdi.presets import PRESETS

PRESETS.update(AGENTS)

if __name__ == "__main__":
    sys.exit(main(["sweep", *sys.argv[1:]]))
