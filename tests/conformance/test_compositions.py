"""Any backend launches what any device compiler makes: every pair, with the numbers that came out."""

from __future__ import annotations

from functools import cache

import pytest
import torch

import trunnion
from trunnion import PrebuiltImage, examples
from trunnion.registry import default_registry
from trunnion_cutedsl.examples.cutedsl_vector_add import EXAMPLE as IN_CUTEDSL

IN_CUDA = examples.load("vector_add")
TARGET = "sm_90a"


@cache
def _compiled(backend, compiler, language):
    """Return an example that adds two vectors in a language, and what a backend built of it over a compiler."""
    example = IN_CUTEDSL if language == "cutedsl" else IN_CUDA
    program = example.program
    if language in ("cubin", "ptx"):
        kind = {"cubin": TARGET, "ptx": "compute_90"}[language]
        made = trunnion.compile(program, "nvrtc", target=kind)
        data = made.image(language)
        if language == "cubin":
            program = PrebuiltImage(data).serve(program)
        else:
            code = trunnion.DeviceCode("ptx", data.decode().rstrip("\0"))
            program = type(program)(program.name, program.signature, (code,), program.launches)
    built = trunnion.compile(program, backend, compiler=compiler, target=TARGET, trust=language == "cutedsl")
    return example, built.artifact


def _pairs():
    registry = default_registry()
    backends = [spec for spec in registry.backends() if "cuda" in spec.targets]
    languages = {
        (compiler.name, language)
        for compiler in registry.compilers()
        if "cuda" in compiler.targets
        for language in compiler.languages
    }
    return [
        (backend.name, compiler, language) for backend in backends for compiler, language in sorted(languages)
    ]


PAIRS = _pairs()


@pytest.mark.parametrize(("backend", "compiler", "language"), PAIRS)
def test_a_backend_launches_what_a_compiler_makes(simulator, backend, compiler, language):
    example, artifact = _compiled(backend, compiler, language)
    (kernel,) = artifact.manifest.kernels
    (body,) = example.bodies.values()
    simulator.register_body(kernel.symbol, body)
    with trunnion.load(artifact) as program, simulator.torch_mode():
        a, b = (torch.rand(1003, device="cuda") for _ in range(2))
        assert torch.equal(program(a, b).cpu(), (a + b).cpu())
        into = torch.zeros(1003, device="cuda")
        program(a, b, out=into)
        assert torch.equal(into.cpu(), (a + b).cpu())


def test_every_backend_and_every_language_is_among_the_pairs():
    assert {backend for backend, _, _ in PAIRS} >= {"nvrtc", "tvm_ffi", "cutedsl"}
    assert {language for _, _, language in PAIRS} >= {"cuda", "ptx", "cubin", "cutedsl"}


def test_one_image_is_the_same_whoever_launches_it():
    for compiler, language in (("nvrtc", "cuda"), ("cutedsl", "cutedsl")):
        images = {
            (artifact.files["image.cubin"], artifact.manifest.kernels)
            for _, artifact in (
                _compiled(backend, compiler, language) for backend in ("nvrtc", "tvm_ffi", "cutedsl")
            )
        }
        assert len(images) == 1, language
