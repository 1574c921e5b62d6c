"""Mutation testing: how many small mistakes in the launchers' own code the laws notice (``make mutants``).

It draws a sample, or takes the one that lies in its folder, tries it, and writes the results. What has a verdict is not
tried again unless the sources changed. ``--draw`` only draws, and the rest needs no cosmic-ray: a sample can be drawn
here, carried with its folder, and tried elsewhere.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mutation_trials.campaign import Baseline, Campaign, Records, Server, measured, reached, revision
from mutation_trials.draw import drawn, rules
from mutation_trials.judge import Verdict
from mutation_trials.mutant import Mutant
from mutation_trials.reach import Reach
from mutation_trials.results import Reason, Results, reasons
from mutation_trials.scope import BACKENDS, ROOT, STARTS_PROCESSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HERE = Path(__file__).parent
SPARE = 3  # so many times more are drawn than shall count


def main() -> int:
    options = _options()
    options.folder.mkdir(parents=True, exist_ok=True)
    samples = {language: _sample(language, options) for language in options.language}
    if options.draw:
        return 0
    start = time.monotonic()
    now = "-".join([revision(), *options.laws])  # what few laws say is no verdict of all
    records = Records(options.folder / f"verdicts-{now}.jsonl")
    if options.keep:
        _keep(options.folder, records)
    known = reasons((HERE / "reasons.json").read_text("utf-8"))
    tried = []
    with contextlib.ExitStack() as stack:
        shards = [
            stack.enter_context(Server(options.folder / f"shard{index}")) for index in range(options.shards)
        ]
        for language, mutants in samples.items():
            if not options.again:
                _assume(mutants, known, records)
            baselines = {one: _baseline(options, one, now, shards) for one in BACKENDS[language]}
            reach = {}
            if language == "python":
                reach = {one: _reach(options, one, now, shards, baselines[one]) for one in baselines}
            campaign = Campaign(mutants, options.count, records, _say, reach)
            tried += campaign.run(shards, baselines)
    about = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "seed": options.seed,
        "sources": now,
        "python": platform.python_version(),
        "torch": metadata.version("torch").partition("+")[0],
        "hypothesis": metadata.version("hypothesis"),
    }
    _say(f"{time.monotonic() - start:.0f} s")
    return _write(options, Results(tried, known), about)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--language", nargs="+", choices=tuple(BACKENDS), default=tuple(BACKENDS))
    parser.add_argument("--count", type=int, default=400, help="so many mutants of each language shall count")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shards", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=_folder, default=ROOT / ".mutants", help="what is kept between runs")
    parser.add_argument("--results", type=Path, help="where mutants.json and mutants.md are written")
    parser.add_argument(
        "--laws", nargs="+", metavar="ID", default=[], help="only these: a look, and no score"
    )
    parser.add_argument("--draw", action="store_true", help="only draw the sample")
    parser.add_argument(
        "--keep",
        action="store_true",
        help="take the verdicts that stand under other sources, if the mutated file is the same",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="try those too of which reasons.json says why they survive: otherwise they count as survivors untried",
    )
    return parser.parse_args()


def _folder(text: str) -> Path:
    """Return a folder's absolute path: trials run in folders of their own."""
    return Path(text).resolve()


def _sample(language: str, options: argparse.Namespace) -> list[Mutant]:
    """Return the sample, drawn now or before."""
    file = options.folder / f"sample-{language}-{options.seed}.json"
    wanted = SPARE * options.count
    if file.exists():
        document = json.loads(file.read_text("utf-8"))
        mutants = [Mutant(**one) for one in document["mutants"]]
        drawn_so = document["drawn"] >= wanted and document.get("rules") == rules()
        if drawn_so and all(_fits(mutant) for mutant in mutants):
            return mutants
    _say(f"drawing mutants of {language}")
    mutants = drawn(language, options.seed, wanted)
    document = {"drawn": wanted, "rules": rules(), "mutants": [mutant.document() for mutant in mutants]}
    file.write_text(json.dumps(document, indent=1), "utf-8")
    return mutants


def _fits(mutant: Mutant) -> bool:
    """Whether a mutant's file is what it was when it was drawn."""
    try:
        mutant.applied((ROOT / mutant.path).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return True


def _keep(folder: Path, records: Records) -> None:
    """Take other sources' verdicts of the same mutants, the newest of each."""
    for file in sorted(folder.glob("verdicts-*.jsonl"), key=lambda file: -file.stat().st_mtime_ns):
        for verdict in Records(file).verdicts.values():
            if verdict.id not in records.verdicts:
                records.add(verdict)


def _assume(mutants: Sequence[Mutant], known: Iterable[Reason], records: Records) -> None:
    """Take those for survivors that somebody gave a reason for, whatever laws say of them now.

    Survivors take nine tenths of the time, since every law is asked; a law that kills one by now only makes the score
    better than what is said.
    """
    explained = {(row.path, row.before, row.after) for row in known}
    for mutant in mutants:
        if (mutant.path, mutant.before, mutant.after) in explained:
            records.assume(Verdict(id=mutant.id, status="survived", text="not tried: its reason is known"))


def _baseline(options: argparse.Namespace, backend: str, now: str, shards: Sequence[Server]) -> Baseline:
    """Return what the unmutated sources did."""
    laws = [law for law in options.laws or _laws() if law not in STARTS_PROCESSES.get(backend, ())]
    file = options.folder / f"baseline-{backend}-{now}.json"
    if file.exists():
        kept = json.loads(file.read_text("utf-8"))
        return Baseline(kept["seconds"], tuple(kept["useless"]), kept["silence"])
    _say(f"checking {len(laws)} laws of {backend} on the unmutated sources")
    found = measured(shards, backend, laws)
    kept = {"seconds": found.seconds, "useless": found.useless, "silence": found.silence}
    file.write_text(json.dumps(kept), "utf-8")
    return found


def _reach(
    options: argparse.Namespace, backend: str, now: str, shards: Sequence[Server], baseline: Baseline
) -> Reach:
    """Return what each law runs of the sources."""
    file = options.folder / f"reach-{backend}-{now}.json"
    if not file.exists():
        laws = list(baseline.seconds)
        _say(f"watching what {len(laws)} laws of {backend} run")
        file.write_text(json.dumps(reached(shards, backend, laws)), "utf-8")
    found = json.loads(file.read_text("utf-8"))
    return Reach(found["imported"], found["laws"])


def _laws() -> Sequence[str]:
    """Ask a process of its own for the laws: this one imports nothing that is mutated."""
    text = "from mutation_trials.trial import law_ids; print(*law_ids())"
    folders = [os.fspath(HERE), os.fspath(ROOT / "core/src")]
    path = os.pathsep.join([*folders, *filter(None, [os.environ.get("PYTHONPATH", "")])])
    words = [sys.executable, "-P", "-c", text]
    done = subprocess.run(
        words, env={**os.environ, "PYTHONPATH": path}, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.split()


def _write(options: argparse.Namespace, results: Results, about: dict[str, Any]) -> int:
    folder = options.results or options.folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mutants.json").write_text(json.dumps(results.document(about), indent=1) + "\n", "utf-8")
    (folder / "mutants.md").write_text(results.page(about), "utf-8")
    score = results.score()
    _say(f"killed {score.killed} of {score.counted}; see {folder / 'mutants.md'}")
    return 0


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - it says how far it is


if __name__ == "__main__":
    sys.exit(main())
