"""Try a sample of mutants in several processes, and keep each verdict: what was killed in the middle goes on."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

from mutation_trials.judge import Limits, Verdict
from mutation_trials.scope import ROOT, backend_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mutation_trials.mutant import Mutant
    from mutation_trials.reach import Reach

_HERE = Path(__file__).parent
_FIRST: Final = Limits(silence=600.0, whole=7200.0)
_LEAST_SILENCE, _LEAST_WHOLE = 120.0, 1200.0
_TIMES = 10  # a child may take so many times what the unmutated tree takes
_READ = (
    "core/src",
    "plugins/nvrtc/src",
    "plugins/tvm_ffi/src",
    "plugins/cutedsl/src",
    "plugins/tilelang/src",
)


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the unmutated sources did."""

    seconds: Mapping[str, float]
    """How long each law took."""

    useless: tuple[str, ...]
    """The laws that few examples break."""

    silence: float
    """The longest time without a word."""

    @property
    def limits(self) -> Limits:
        """How long a mutant may take."""
        whole = 2 * sum(self.seconds.values())
        return Limits(
            silence=max(_LEAST_SILENCE, _TIMES * self.silence), whole=max(_LEAST_WHOLE, _TIMES * whole)
        )


def revision(root: Path = ROOT) -> str:
    """Return a digest of all that a verdict depends on: the sources, laws among them."""
    found = hashlib.sha256()
    files = (path for folder in _READ for path in (root / folder).rglob("*") if path.suffix in _SOURCES)
    for path in sorted(files):
        found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


_SOURCES = frozenset({".py", ".hpp", ".cc", ".h", ".c"})


class Server:
    """One process that tries mutants.

    Parameters
    ----------
    folder
        For all that it writes.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = [os.fspath(_HERE.parent), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        self._process = subprocess.Popen(
            [sys.executable, "-P", os.fspath(_HERE / "server.py"), os.fspath(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(
        self,
        backend: str,
        laws: Sequence[str],
        limits: Limits,
        mutant: Mutant | None,
        short: Sequence[str] = (),
    ) -> dict[str, Any]:
        """Have it try a mutant; None: the sources as they are.

        Raises
        ------
        RuntimeError
            If it ends.
        """
        return self._answer(
            {
                "backend": backend,
                "laws": list(laws),
                "short": list(short),
                "limits": dataclasses.asdict(limits),
                "mutant": None if mutant is None else mutant.document(),
            }
        )

    def reach(self, backend: str, laws: Sequence[str]) -> dict[str, Any]:
        """Have it watch laws on the sources as they are; return what runs at import, and what each law runs.

        Raises
        ------
        RuntimeError
            If it ends.
        """
        return self._answer({"backend": backend, "laws": list(laws), "reach": True})

    def _answer(self, job: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process that tries mutants ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


class Records:
    """Verdicts in a file, one in each line: a line that is cut short is no verdict."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.verdicts: dict[str, Verdict] = {}
        if file.exists():
            text = file.read_text("utf-8")
            whole = text[: text.rfind("\n") + 1]
            for line in whole.splitlines():
                document = json.loads(line)
                self._take(Verdict(**{**document, "unconfirmed": tuple(document["unconfirmed"])}))
            if whole != text:
                file.write_text(whole, "utf-8")

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict, now."""
        with self._file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(dataclasses.asdict(verdict)) + "\n")
            out.flush()
            os.fsync(out.fileno())
        self._take(verdict)

    def assume(self, verdict: Verdict) -> None:
        """Take a verdict that was not found by trying, and keep it in no file; one that was found stands."""
        self.verdicts.setdefault(verdict.id, verdict)

    def _take(self, verdict: Verdict) -> None:
        self.verdicts[verdict.id] = verdict


class Campaign:
    """The mutants of one language, of which so many are tried as are wanted.

    Parameters
    ----------
    mutants
        The sample, in its order.
    count
        How many mutants shall count: those with which vector add does not launch do not.
    records
        The verdicts that there are; new ones are added.
    say
        Told each verdict.
    reach
        What each law of a backend runs: a mutant is tried by those laws alone that run what it changes. By the laws of
        a backend that is not in it, by all.
    """

    def __init__(
        self,
        mutants: Sequence[Mutant],
        count: int,
        records: Records,
        say: Callable[[str], None] = lambda _: None,
        reach: Mapping[str, Reach] = MappingProxyType({}),
    ) -> None:
        self._reach = reach
        self._mutants, self._count, self._records, self._say = mutants, count, records, say
        self._lock = threading.Condition()
        self._next = self._running = self._counted = 0
        self._broken: list[BaseException] = []

    def run(
        self, servers: Sequence[Server], baselines: Mapping[str, Baseline]
    ) -> list[tuple[Mutant, Verdict]]:
        """Try mutants until so many count as are wanted, or there are no more; return those, in the sample's order.

        Parameters
        ----------
        servers
            Who tries them.
        baselines
            What the unmutated sources did, by backend.

        Raises
        ------
        RuntimeError
            If a process that tries them ends.
        """
        threads = [threading.Thread(target=self._work, args=(one, baselines), daemon=True) for one in servers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._broken:
            raise RuntimeError(f"{len(self._broken)} of {len(servers)} processes ended") from self._broken[0]
        tried = ((mutant, self._records.verdicts.get(mutant.id)) for mutant in self._mutants[: self._next])
        return [(mutant, verdict) for mutant, verdict in tried if verdict is not None]

    def _work(self, server: Server, baselines: Mapping[str, Baseline]) -> None:
        try:
            while (mutant := self._take()) is not None:
                backend = backend_of(mutant.path)
                baseline = baselines[backend]
                order = [law for law in self._order(baseline) if self._tells(backend, law, mutant)]
                short = [law for law in order if law not in baseline.useless]
                answer = server.ask(backend, order, baseline.limits, mutant, short)
                self._give(mutant, Verdict(**{**answer, "unconfirmed": tuple(answer["unconfirmed"])}))
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            with self._lock:
                self._broken.append(error)
                self._lock.notify_all()

    def _tells(self, backend: str, law: str, mutant: Mutant) -> bool:
        reach = self._reach.get(backend)
        return reach is None or reach.tells(law, mutant, (ROOT / mutant.path).read_text("utf-8"))

    def _take(self) -> Mutant | None:
        """Return the next mutant that has no verdict; None: enough count, or will if all that are tried now do."""
        with self._lock:
            while True:
                if self._broken:
                    return None
                if self._counted + self._running >= self._count:
                    if not self._running:
                        return None
                    self._lock.wait()
                    continue
                if self._next == len(self._mutants):
                    return None
                mutant = self._mutants[self._next]
                self._next += 1
                known = self._records.verdicts.get(mutant.id)
                if known is None:
                    self._running += 1
                    return mutant
                self._counted += known.status != "left out"

    def _give(self, mutant: Mutant, verdict: Verdict) -> None:
        with self._lock:
            self._records.add(verdict)
            self._running -= 1
            self._counted += verdict.status != "left out"
            said = verdict.status + (f" by {verdict.law} ({verdict.how})" if verdict.law else "")
            where = f"{mutant.path}:{mutant.line} {mutant.operator}"
            self._say(
                f"[{self._counted}/{self._count}] {said}: {where}, {verdict.cpu:.0f} s of processor time"
            )
            self._lock.notify_all()

    def _order(self, baseline: Baseline) -> list[str]:
        """Return the laws in the order in which they are tried: those that killed the most for their cost first."""
        with self._lock:
            kills = Counter(verdict.law for verdict in self._records.verdicts.values())
        place = {law: (1 + kills[law]) / (0.1 + seconds) for law, seconds in baseline.seconds.items()}
        return sorted(place, key=lambda law: -place[law])


def reached(servers: Sequence[Server], backend: str, laws: Sequence[str]) -> dict[str, Any]:
    """Watch laws, shared between servers; see `Server.reach`.

    Raises
    ------
    RuntimeError
        If a server ends.
    """
    with ThreadPoolExecutor(len(servers)) as pool:
        found = list(pool.map(lambda server, share: server.reach(backend, share), *_shared(servers, laws)))
    imported: dict[str, set[int]] = {}
    for one in found:
        for path, lines in one["imported"].items():
            imported.setdefault(path, set()).update(lines)
    return {
        "imported": {path: sorted(lines) for path, lines in imported.items()},
        "laws": {law: lines for one in found for law, lines in one["laws"].items()},
    }


def measured(servers: Sequence[Server], backend: str, laws: Sequence[str]) -> Baseline:
    """Try the unmutated sources, the laws shared between servers.

    Raises
    ------
    RuntimeError
        If a law does not hold there: then nothing can be said of a mutant.
    """
    with ThreadPoolExecutor(len(servers)) as pool:
        every = pool.map(
            lambda server, share: server.ask(backend, share, _FIRST, None), *_shared(servers, laws)
        )
        found = list(every)
    for one in found:
        if one["status"] != "green":
            raise RuntimeError(f"the unmutated sources: {one['status']} {one['law']}: {one['text']}")
    seconds = {law: spent for one in found for law, spent in one["seconds"].items()}
    useless = {law for one in found for law in one["useless"]}
    return Baseline(
        {law: seconds[law] for law in laws},
        tuple(law for law in laws if law in useless),
        max(one["silence"] for one in found),
    )


def _shared(servers: Sequence[Server], laws: Sequence[str]) -> tuple[Sequence[Server], list[Sequence[str]]]:
    """Return servers, and for each its share of the laws; who would have none is left out."""
    shares = [laws[index :: len(servers)] for index in range(min(len(servers), len(laws)))]
    return servers[: len(shares)], shares
