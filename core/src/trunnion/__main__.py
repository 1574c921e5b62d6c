"""``python -m trunnion``: the command, for an environment whose scripts are not on the path."""

from __future__ import annotations

import sys

from trunnion.cli import main

if __name__ == "__main__":
    sys.exit(main())
