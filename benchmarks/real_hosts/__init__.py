"""The parts of ``benchmarks/real_sources.py``."""

import sys
from pathlib import Path

# The programs are described where they are tested, and tests are no package.
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests/real_sources"))
