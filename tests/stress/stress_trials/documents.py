"""Mutated programs, manifests and descriptions of calls: each is read, or refused by a typed error."""

from __future__ import annotations

import hashlib
import json
import pickle
import sys
from collections import Counter
from copy import deepcopy
from random import Random
from typing import TYPE_CHECKING, Any

from stress_trials.shard import Journal, finish

from trunnion import KernelProgram, examples
from trunnion.artifacts.manifest import FileRecord, Manifest, artifact_key
from trunnion.codegen.cpp.call_signature import CallSignature
from trunnion.contract.compiler import ImageKernel, ImageParameter
from trunnion.errors import CorruptArtifactError, ProgramError, TrunnionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_TEXT = 1 << 16  # characters of a message
MOST_PLACES = 5000
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**300, 10**4000, 0.0, -0.0, 1.5, 1e308,
    float("inf"), float("-inf"), float("nan"), "", " ", "\0", "\x1b[31m\a", "\u202e\u2028", "\ud800", "é" * 50,
    "x" * 5000, "n", "n +", "((((", "(" * 300 + "n" + ")" * 300, "+".join(["n"] * 3000), "-" * 500 + "1",
    "cast(int32, n)", "ceildiv(n, 0)", "select(n, n, n)", '"n"', '"\\ud800"', "1" * 500, [], {}, [None], [[]], {"x": 1},
    [0] * 70, ["n"] * 70, "float32", "complex64", "nan", "cuda", "cubin", "sm_90a",
)  # fmt: skip


def program_texts() -> list[str]:
    """Return programs that have every feature of the examples."""
    return [examples.load(name).program.to_json() for name in examples.EXAMPLES]


def manifest_texts() -> list[str]:
    """Return manifests with and without a key."""
    kernel = ImageKernel("k<1>", "_Z1kv", (ImageParameter(0, 0, 8), ImageParameter(1, 8, 4)))
    files = {name: FileRecord.of(name.encode()) for name in ("launcher.so", "kernel.cubin")}
    common: dict[str, Any] = {
        "backend": "acme", "contract_version": 1, "target": "cuda:sm_90a", "plan_hash": "0" * 64, "emitter": "a 1",
        "kernels": (kernel, kernel), "files": files, "toolchain": {"cc": "13"},
    }  # fmt: skip
    inputs = {"plan": "0" * 64, "é": "x"}
    made = (Manifest(**common), Manifest(**common, key_inputs=inputs, key=artifact_key(inputs)))
    return [one.to_json().decode() for one in made]


def call_texts() -> list[str]:
    """Return what C++ launchers' artifacts say of calls."""
    return [CallSignature.of(examples.load(name).program.plan()).to_json() for name in examples.EXAMPLES]


def read_program(data: bytes) -> None:
    """Read a program as a command does, and do with one that is good what a compilation does first."""
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    program = KernelProgram.from_json(text)
    again = program.to_json()
    if KernelProgram.from_json(again) != program:
        raise AssertionError("another program came back")
    plan = program.plan()
    if len(plan.hash) != len(hashlib.sha256().hexdigest()):
        raise AssertionError("a plan without a hash")


def read_manifest(data: bytes) -> None:
    """Read a manifest, of which one spelling alone is right."""
    if Manifest.from_json(data).to_json() != data:
        raise AssertionError("another manifest came back")


def read_call(data: bytes) -> None:
    """Read what is known of a call."""
    if CallSignature.from_json(data).to_json().encode() != data:
        raise AssertionError("other facts came back")


READERS: tuple[tuple[str, Callable[[], list[str]], Callable[[bytes], None], type[TrunnionError]], ...] = (
    ("program", program_texts, read_program, ProgramError),
    ("manifest", manifest_texts, read_manifest, CorruptArtifactError),
    ("call", call_texts, read_call, CorruptArtifactError),
)


def signed(rng: Random, document: Any) -> Any:
    """Return a manifest whose own hash, and key, are right, so that what is behind these checks is reached."""
    if not isinstance(document, dict):
        return document
    members = {name: value for name, value in document.items() if name != "sha256"}
    inputs = members.get("key_inputs")
    texts = isinstance(inputs, dict) and inputs and all(isinstance(one, str) for one in inputs.values())
    if rng.random() < 0.5 and texts:  # nothing else has a key
        members["key"] = artifact_key(inputs)
    return {**members, "sha256": hashlib.sha256(spelling(members)).hexdigest()}


def spelling(document: Any) -> bytes:
    """Return a manifest's text; unlike the manifest itself, of whatever it holds."""
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container of a document with each of its keys."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in [*items]:
        yield value, key
        yield from places(member)


def change(rng: Random, document: Any, other: Any) -> None:
    """Change one thing in a document."""
    here = [*places(document)]
    if not 0 < len(here) < MOST_PLACES:  # what was made many times over is not made many times over again
        return
    holder, key = rng.choice(here)
    match rng.randrange(8):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[rng.choice(("extra", "Name", "", "__class__", "\x1b", "\ud800"))] = deepcopy(
                rng.choice(VALUES)
            )
        case 2 if isinstance(holder, list):
            holder[key:key] = [holder[key]] * rng.choice((1, 2, 70, 300))
        case 3:
            source, from_ = rng.choice(here)
            holder[key] = json.loads(json.dumps(source[from_]))
        case 4:
            source, from_ = rng.choice([*places(other)])
            holder[key] = json.loads(json.dumps(source[from_]))
        case 5 if isinstance(holder[key], str) and holder[key]:
            at = rng.randrange(len(holder[key]))
            letter = rng.choice(('"', "\\", "\0", "(", ")", "n", "9", " ", "\u2028", "*", "//", "%", ","))
            holder[key] = holder[key][:at] + letter + holder[key][at + rng.randrange(2) :]
        case 6:
            deep: Any = deepcopy(rng.choice(VALUES))
            for _ in range(rng.choice((1, 3, 80, 400))):
                deep = [deep] if rng.random() < 0.5 else {"a": deep}
            holder[key] = deep
        case _:
            holder[key] = deepcopy(rng.choice(VALUES))


def scramble(rng: Random, data: bytes) -> bytes:
    """Change some bytes of a text."""
    found = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(found) + 1), rng.choice((1, 1, 2, 10, 200))
        match rng.randrange(6):
            case 0:
                del found[at:]
            case 1:
                del found[at : at + length]
            case 2:
                found[at:at] = found[at : at + length] * rng.choice((1, 2, 50))
            case 3:
                found[at:at] = rng.randbytes(length)
            case 4:
                found[at:at] = rng.choice(
                    (b'"', b"{", b"[", b"}", b"]", b",", b":", b"\\u", b"\x00", b"1e9", b"-", b"NaN")
                )
            case _ if at < len(found):
                found[at] ^= 1 << rng.randrange(8)
    return bytes(found)


def mutated(rng: Random, kind: str, texts: list[str]) -> bytes:
    """Return a text with some mistakes."""
    text = rng.choice(texts)
    if rng.random() < 0.3:
        return scramble(rng, text.encode())
    try:
        return rewritten(rng, kind, json.loads(text), json.loads(rng.choice(texts)))
    except RecursionError:  # deep in deep in deep: what is too deep to be written
        return scramble(rng, (text[:200] + "[" * 100_000).encode())


def rewritten(rng: Random, kind: str, document: Any, other: Any) -> bytes:
    """Return the text of a document, some things of which are changed."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        change(rng, document, other)
    if kind == "manifest":
        return spelling(signed(rng, document) if rng.random() < 0.8 else document)
    return json.dumps(document).encode()


def verdict(
    read: Callable[[bytes], None], data: bytes, allowed: type[TrunnionError], counts: Counter[str]
) -> str:
    """Return what is wrong with how a text was read; empty if nothing is."""
    try:
        read(data)
    except allowed as error:
        counts["refused"] += 1
        text = str(error)
        if len(text) > MOST_TEXT or not text.replace("\n", "").replace("\t", "").isprintable():
            return f"a message of {len(text)} characters, or one that does not print: {text[:300]!a}"
        back = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
        return "" if str(back) == text else "the error is another one after pickling"
    except BaseException as error:  # noqa: BLE001 - whatever else leaves is what is looked for
        return f"{type(error).__name__}: {str(error)[:300]!a}"
    counts["read"] += 1
    return ""


def main(path: str, seed: int, count: int) -> None:
    """Run a shard."""
    rng, journal, counts = Random(seed), Journal(path), Counter[str]()  # noqa: S311 - no secret
    texts = {kind: made() for kind, made, _, _ in READERS}
    for _ in range(count):
        kind, _, read, allowed = rng.choices(READERS, (5, 3, 1))[0]
        data = mutated(rng, kind, texts[kind])
        counts[kind] += 1
        journal.attempt(lambda: verdict(read, data, allowed, counts), lambda: repr(data))  # noqa: B023 - called at once
    finish(journal, counts)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
