"""Programs as JSON: written, and read."""

from __future__ import annotations

from trunnion.model.serial.writing import SCHEMA, dump_program

__all__ = ["SCHEMA", "dump_program"]
