"""Configuration of the documentation's build."""

from __future__ import annotations

import importlib.metadata

project = "trunnion"
author = "the trunnion authors"
release = version = importlib.metadata.version("trunnion")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "results"]  # results: included by the page of the benchmarks
html_theme = "furo"
html_title = f"trunnion {release}"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

default_role = "py:obj"  # `Name` in a docstring is a link, where there is something of that name
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# No "members" here: a default of it would win over what a directive names.
autodoc_default_options = {"show-inheritance": True}
napoleon_google_docstring = False
napoleon_use_rtype = False
