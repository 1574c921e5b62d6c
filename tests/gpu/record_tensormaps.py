"""Write what this machine's driver says to chosen requests, for the tests that have no GPU.

Usage: ``python tests/gpu/record_tensormaps.py core/tests/model/tensormap_answers_h200.json``

Chosen are the requests around the edges of every rule, and of random ones the first few that break no rule and the
first few that break one rule alone, for each rule of each table.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from gpu_reading.encoding import Driver

from trunnion.model.tensormap.rules import TiledFields, violations
from trunnion.testing.strategies import boundary_requests, random_request

FOR_EACH_RULE, GOOD = 5, 60


def chosen(capability):
    yield from dict.fromkeys(boundary_requests())
    taken = collections.Counter()
    rng = random.Random(20)  # noqa: S311 - reproducible, not secret
    for request in itertools.islice(iter(lambda: random_request(rng), None), 40_000):
        broken = {rule.text for rule, _ in violations(request, capability)}
        key = (type(request), *broken)
        if len(broken) <= 1 and taken[key] < (FOR_EACH_RULE if broken else GOOD):
            taken[key] += 1
            yield request


def main(path: str) -> None:
    driver = Driver()
    rows = {"tiled": [], "im2col": []}
    columns = {}
    for request in chosen(driver.compute_capability):
        kind = "tiled" if isinstance(request, TiledFields) else "im2col"
        values = {item.name: getattr(request, item.name) for item in dataclasses.fields(request)}
        columns[kind] = list(values)
        rows[kind].append([driver.accepts(request), *values.values()])
    head = {"compute_capability": driver.compute_capability, "driver": driver.version, "columns": columns}
    lines = [json.dumps(head)]
    for kind, some in rows.items():
        lines.extend(json.dumps([kind, *row], separators=(",", ":")) for row in some)
    Path(path).write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
