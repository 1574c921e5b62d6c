"""Exporters: what was built, in the forms in which other tools ship code."""
