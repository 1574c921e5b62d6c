"""`compile` and `load`: what a cache's key holds, what wrong arguments get, and which artifacts are refused."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest
import torch

import trunnion
from trunnion import DeviceCode, ProgramBuilder, compilation, errors, examples
from trunnion.sim.trace import AttributeSet
from trunnion_nvrtc.backend.adapter import NvrtcAdapter
from trunnion_nvrtc.backend.wrapper import NvrtcWrapper
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler


@pytest.fixture(scope="module")
def built():
    return trunnion.compile(examples.load("vector_add").program, target="sm_90a").artifact


def program(**code):
    source = 'extern "C" __global__ void k(float* x, int n) { if (n > 99) x[0] = n; }'
    p = trunnion.ProgramBuilder("p", trunnion.DeviceCode("cuda", source, **code))
    x, n = p.input("x", "float32", (4,), access="write"), p.scalar("n", "int32")
    p.launch("k", args=(x, n), grid=1, block=1)
    return p.build()


def key(tmp_path, subject=None, **more):
    made = trunnion.compile(subject or program(), cache=tmp_path, **{"target": "sm_90a", **more})
    return made.artifact.manifest.key


def test_the_key_holds_all_that_changes_the_bytes(tmp_path, monkeypatch):
    plain = key(tmp_path)
    assert key(tmp_path) == plain
    keys = {
        plain,
        key(tmp_path, target="sm_80"),
        key(tmp_path, program(defines=(("A", "1"),))),
        key(tmp_path, options={"nvrtc": {"use_fast_math": True}}),
    }
    for owner, name, value in (
        (NvrtcCompiler, "fingerprint", lambda self: "another build"),
        (NvrtcAdapter, "fingerprint", lambda self: "other bindings"),
        (NvrtcCompiler, "environment", lambda self, request: {"x.h": "changed"}),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, value)
            keys.add(key(tmp_path))
    for owner, name, value in (
        (NvrtcWrapper, "version", "another emitter"),
        (compilation, "PLAN_VERSION", 0),
        (NvrtcWrapper, "version", ""),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, value)
            keys.add(key(tmp_path))
    with monkeypatch.context() as patch:
        emit = NvrtcWrapper.emit
        patch.setattr(NvrtcWrapper, "version", "")
        patch.setattr(NvrtcWrapper, "emit", lambda self, plan: replace(emit(self, plan), text="# other\n"))
        keys.add(key(tmp_path))
    assert len(keys) == 11


def test_a_header_that_changes_is_another_key(tmp_path):
    header = tmp_path / "include" / "size.h"
    header.parent.mkdir()
    source = '#include "size.h"\nextern "C" __global__ void k(float* x) { x[0] = SIZE; }'
    p = trunnion.ProgramBuilder(
        "p", trunnion.DeviceCode("cuda", source, options=(f"--include-path={header.parent}",))
    )
    p.launch("k", args=(p.input("x", "float32", (4,), access="write"),), grid=1, block=1)
    images = []
    for size in ("1", "2", "1"):
        header.write_text(f"#define SIZE {size}\n", "utf-8")
        images.append(trunnion.compile(p.build(), target="sm_90a", cache=tmp_path / "store").image("cubin"))
    assert images[0] != images[1]
    assert images[0] == images[2]


def from_files(folder, **code):
    """Return a program whose source and header are read from files below a folder."""
    folder.mkdir(parents=True)
    (folder / "size.h").write_text("#define SIZE 3\n", "utf-8")
    source = '#include "size.h"\nextern "C" __global__ void k(float* x) { x[0] = SIZE + __LINE__; }'
    (folder / "kernel.cu").write_text(source, "utf-8")
    p = trunnion.ProgramBuilder("p", DeviceCode.from_file(folder / "kernel.cu", **code))
    p.launch("k", args=(p.input("x", "float32", (4,), access="write"),), grid=1, block=1)
    return p.build()


def test_the_key_does_not_say_where_the_sources_lay(tmp_path, monkeypatch):
    """Nor where it is compiled; and line tables do not either, so that one image serves both."""
    made = []
    for name in ("one", "another/below"):
        folder = tmp_path / name
        subject = from_files(folder, includes=(("size.h", "#define SIZE 3\n"),))
        (folder / "tmp").mkdir()
        monkeypatch.chdir(folder)
        monkeypatch.setattr("tempfile.tempdir", str(folder / "tmp"))
        options = {"nvrtc": {"lineinfo": True}}
        made.append(
            trunnion.compile(
                subject, target="sm_90a", cache=tmp_path / name / "store", options=options
            ).artifact
        )
    assert made[0].manifest.key == made[1].manifest.key
    assert made[0] == made[1]
    assert str(tmp_path) not in "".join(made[0].manifest.key_inputs.values())


def test_the_key_says_where_headers_on_disk_lie(tmp_path):
    """``__FILE__`` and line tables do too: the images differ."""
    keys = {
        key(tmp_path / "store", from_files(tmp_path / name), options={"nvrtc": {"I": str(tmp_path / name)}})
        for name in ("one", "another")
    }
    assert len(keys) == 2


def test_parts_that_name_different_targets_are_refused():
    parts = tuple(trunnion.DeviceCode("cuda", "", target=target) for target in ("sm_80", "sm_90a"))
    with pytest.raises(errors.ProgramError, match="different targets"):
        trunnion.compile(replace(program(), code=parts))


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"subject": "text"}, errors.ArgumentTypeError),
        ({"compiler": 5}, errors.ArgumentTypeError),
        ({"registry": 5}, errors.ArgumentTypeError),
        ({"backend": None}, errors.ArgumentTypeError),
        ({"options": 5}, errors.ProgramError),
        ({"options": "nvrtc"}, errors.ProgramError),
        ({"options": {"nvrtc": 5}}, errors.ProgramError),
        ({"options": {"nvrtc": {5: 1}}}, errors.ProgramError),
        ({"options": {5: {}, "a": {}}}, errors.ProgramError),
        ({"cache": 5}, errors.ArgumentTypeError),
        ({"cache": 1}, errors.ArgumentTypeError),
        ({"recache": 1}, errors.ArgumentTypeError),
        ({"cache": ""}, errors.ArtifactError),
        ({"cache": "a\0b"}, errors.ArtifactError),
        ({"cache": "/dev/null/x"}, errors.ArtifactError),
    ],
    ids=str,
)
def test_a_wrong_argument_of_compile_is_a_typed_error(more, error):
    subject = more.pop("subject", None) or program()
    with pytest.raises(error):
        trunnion.compile(subject, **{"target": "sm_90a", **more})


@pytest.mark.parametrize("artifact", [5, None, b"x", "a\0b", "", "/nonexistent/folder"])
def test_what_is_no_artifact_is_a_typed_error(artifact):
    with pytest.raises(errors.TrunnionError):
        trunnion.load(artifact)


@pytest.mark.parametrize(
    "change",
    [
        {"contract_version": 99},
        {"contract_version": 0},
        {"emitter": "python/999 nvrtc/77"},
        {"target": "nonsense!!"},
        {"kernels": ()},
        {"plan_hash": "0" * 64},
    ],
    ids=str,
)
def test_an_artifact_whose_parts_do_not_belong_together_is_refused(built, change):
    changed = type(built)(replace(built.manifest, **change), built.files)
    with pytest.raises(errors.ArtifactError):
        trunnion.load(changed)


@pytest.mark.parametrize("text", [b"\xff", b"", b"1/0", b"import os"])
def test_a_launcher_that_trunnion_did_not_write_is_never_run(built, text):
    with pytest.raises(errors.CorruptArtifactError) as caught:
        trunnion.load(built.including("launcher.py", text))
    assert caught.value.what == "launcher.py"


def test_closing_from_two_sides_does_not_hang(simulator):
    example = examples.load("vector_add")
    program = trunnion.compile(example.program, target="sm_90a")
    inside, refusals = threading.Event(), []

    def body(call):
        inside.set()
        closer.join(0.2)  # the other thread is inside close() now, and waits for this launch
        try:
            program.close()
        except errors.LifecycleError as error:
            refusals.append(error)

    simulator.register_body("vector_add", body)
    with simulator.torch_mode():
        x = torch.zeros(8, device="cuda:0")
        closer = threading.Thread(target=lambda: (inside.wait(60), program.close()), daemon=True)
        caller = threading.Thread(target=lambda: program(x, x), daemon=True)
        closer.start()
        caller.start()
        caller.join(60)
        closer.join(60)
    assert not caller.is_alive()
    assert not closer.is_alive()
    assert len(refusals) == 1


def test_two_names_of_one_kernel_share_its_shared_memory(simulator):
    source = 'extern "C" __global__ void k(int n) {}'
    p = trunnion.ProgramBuilder("p", trunnion.DeviceCode("cuda", source))
    n = p.scalar("n", "int32")
    p.launch("k", args=(n,), grid=1, block=1, dynamic_smem_bytes=200 * 1024)
    p.launch("::k", args=(n,), grid=1, block=1, dynamic_smem_bytes=100 * 1024)
    simulator.clear_trace()
    with trunnion.compile(p.build(), target="sm_90a") as compiled:
        compiled(1, device=0)
    asked = [event.value for event in simulator.trace if isinstance(event, AttributeSet)]
    assert asked == [200 * 1024]


def test_shared_memory_is_asked_for_even_below_the_usual_limit(simulator):
    """A kernel's static shared memory counts too, so 20 KiB more may already need the driver's permission."""
    source = 'extern "C" __global__ void k(float* x) { __shared__ float s[10240]; s[threadIdx.x] = 1; x[0] = s[1]; }'
    p = trunnion.ProgramBuilder("p", trunnion.DeviceCode("cuda", source))
    x = p.input("x", "float32", (4,), access="write")
    p.launch("k", args=(x,), grid=1, block=1, dynamic_smem_bytes=20 * 1024)
    simulator.clear_trace()
    with trunnion.compile(p.build(), target="sm_90a") as compiled, simulator.torch_mode():
        compiled(torch.zeros(4, device="cuda:0"))
    assert [event.value for event in simulator.trace if isinstance(event, AttributeSet)] == [20 * 1024]


def test_the_json_of_a_program_is_no_program():
    text = program().to_json()
    with pytest.raises(errors.ArgumentTypeError):
        trunnion.compile(text)
    assert trunnion.KernelProgram.from_json(text) == program()
    assert json.loads(text)["schema"] == "trunnion.program/2"


def test_a_warning_of_the_compiler_is_kept_and_read_back(tmp_path):
    code = 'extern "C" __global__ void k(int n) { int unused = n; }'
    p = ProgramBuilder("warns", DeviceCode("cuda", code, target="sm_90a"))
    p.launch("k", args=(p.scalar("n", "int32"),), grid=1, block=1)
    program = trunnion.compile(p.build(), cache=tmp_path)
    assert "unused" in program.log
    assert trunnion.load(program.artifact).log == program.log
    assert trunnion.compile(p.build(), cache=tmp_path).log == program.log
