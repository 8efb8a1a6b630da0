"""``python -m gdi``: the same as the command ``gdi``."""

import sys

from gdi.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
