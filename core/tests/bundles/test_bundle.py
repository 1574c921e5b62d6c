"""Bundles: what is written is what is opened, on the machine that opens it, and nothing else."""

from __future__ import annotations

import copy
import errno
import hashlib
import itertools
import os
import pickle
import struct
import threading
import zipfile
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import trunnion
from trunnion import examples
from trunnion.artifacts.json_document import sealed
from trunnion.bundles import bundle as opened_bundles
from trunnion.bundles import conditions, parts
from trunnion.bundles.bundle import Bundle
from trunnion.bundles.conditions import Condition
from trunnion.bundles.index import MAX_INDEX_BYTES, Index, Part, Variant
from trunnion.compiled import CompiledProgram
from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ArtifactError,
    CorruptArtifactError,
    DeviceRequirementError,
    LifecycleError,
    ProgramError,
    TrunnionError,
    UnknownProgramError,
    UntrustedArtifactError,
)
from trunnion.exporters.programs import bundled_programs
from trunnion.image.ptx import least_cuda, read_ptx
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.toolchain import processor
from trunnion.toolchain.device import Absence

HOPPER, AMPERE = "sm_90a", "sm_80"
ADD = examples.load("vector_add").program


def built(backend="nvrtc", target=HOPPER, program=ADD):
    return trunnion.compile(program, backend, target=target).artifact


@pytest.fixture(scope="module")
def artifacts():
    """Return vector_add by three backends for two architectures."""
    return {
        (backend, target): built(backend, target)
        for backend in ("nvrtc", "tvm_ffi")
        for target in (HOPPER, AMPERE)
    }


@pytest.fixture
def written(tmp_path, artifacts):
    """Return the index of a bundle of vector_add for two architectures."""
    trunnion.write_bundle(
        tmp_path / "kernels.trn", {"add": [artifacts["nvrtc", AMPERE], artifacts["nvrtc", HOPPER]]}
    )
    return tmp_path / "kernels.trn"


def part_of(index, arch):
    """Return the file of a part."""
    return index.with_name(Bundle.open(index).index.parts[arch].file)


def adds(program, device=0):
    a, b = (torch.arange(257, dtype=torch.float32, device=f"cuda:{device}") for _ in range(2))
    program(a, b)


# What is written ----------------------------------------------------------------------------------------------------


def test_an_index_and_a_file_for_each_architecture(written):
    names = sorted(file.name for file in written.parent.iterdir())
    assert len(names) == 3
    for name, arch in zip(names, ("sm_80", "sm_90a"), strict=False):
        digest = hashlib.sha256((written.parent / name).read_bytes()).hexdigest()
        assert name == f"kernels.{arch}.{digest[:12]}.trn"
    assert written.stat().st_size < 4096  # thin: it holds no artifact
    index = Index.from_json(written.read_bytes(), "kernels.trn")
    assert [one.target for one in index.programs["add"]] == ["cuda:sm_90a", "cuda:sm_80"]


def test_equal_programs_give_equal_bytes(written, tmp_path, artifacts):
    again = tmp_path / "again" / "kernels.trn"
    trunnion.write_bundle(again, {"add": (artifacts["nvrtc", HOPPER], artifacts["nvrtc", AMPERE])})
    for file in written.parent.glob("*.trn"):
        assert (again.parent / file.name).read_bytes() == file.read_bytes(), file.name


def test_compiled_programs_are_taken_alone_and_together(tmp_path):
    program = trunnion.compile(ADD, "nvrtc", target=HOPPER)
    index = trunnion.write_bundle(tmp_path / "x.trn", {"one": program, "two": [program, program.artifact]})
    assert [len(variants) for variants in index.programs.values()] == [1, 1]
    with zipfile.ZipFile(part_of(tmp_path / "x.trn", HOPPER)) as part:  # equal ones are written once
        assert len({name.partition("/")[0] for name in part.namelist()}) == 1


def test_what_it_needs_of_the_host_is_in_the_index(artifacts):
    python, cpp = (conditions.conditions_of(artifacts[name, HOPPER]) for name in ("nvrtc", "tvm_ffi"))
    assert [(one.fact, one.rule) for one in python] == [("backend", "writes"), ("device", "runs")]
    facts = {(one.fact, one.rule): one.value for one in cpp}
    assert facts["device", "runs"] == HOPPER
    assert facts["host.machine", "is"] == os.uname().machine
    assert facts["host.libc", "at least"].startswith("2.")


@pytest.mark.parametrize(
    ("name", "programs", "kind"),
    [
        ("kernels", {}, ArgumentValueError),
        (".trn", {}, ArgumentValueError),
        ("a b.trn", {}, ArgumentValueError),
        ("z.sm_80.0123456789ab.trn", {}, ArgumentValueError),
        ("x.trn", {"add": 3}, ArgumentTypeError),
        ("x.trn", {"add": [ADD]}, ArgumentTypeError),
        ("x.trn", [ADD], ArgumentTypeError),
        ("x.trn", {"add": []}, ArgumentValueError),
        ("x.trn", {3: ADD}, ArgumentTypeError),
        ("größe.trn", {}, ArgumentValueError),
    ],
)
def test_what_is_no_bundle_is_refused_and_nothing_is_written(tmp_path, name, programs, kind):
    with pytest.raises(kind):
        trunnion.write_bundle(tmp_path / name, programs)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_to_is_a_typed_error(tmp_path, artifacts):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="cannot write"):
        trunnion.write_bundle(tmp_path / "file" / "x.trn", {"add": artifacts["nvrtc", HOPPER]})


def test_all_artifacts_are_read_in_one_opening_of_each_part(written, artifacts, monkeypatch):
    """To open an archive reads the whole of its directory: a time for each program would be quadratic."""
    renamed = {name: [artifacts["nvrtc", HOPPER], artifacts["nvrtc", AMPERE]] for name in ("b", "a", "c")}
    trunnion.write_bundle(written, renamed)
    bundle, opened = Bundle.open(written), []
    monkeypatch.setattr(
        opened_bundles, "opened_part", lambda file, part: opened.append(file) or parts.opened_part(file, part)
    )
    every = [(name, one, bundle.artifact(one)) for name in "abc" for one in bundle.index.programs[name]]
    opened.clear()
    assert list(bundle.artifacts()) == every
    assert sorted(opened) == sorted(part_of(written, arch) for arch in (AMPERE, HOPPER))
    opened.clear()
    assert list(bundled_programs(bundle)) == ["a", "b", "c"]
    assert len(opened) == 2


# What is opened -----------------------------------------------------------------------------------------------------


def test_a_program_launches(written, simulator):
    with simulator.torch_mode(), trunnion.load(written) as bundle:
        assert (list(bundle), len(bundle), "add" in bundle) == (["add"], 1, True)
        adds(bundle["add"])
        assert bundle["add"] is bundle["add"]
        assert str(bundle["add"].target) == "cuda:sm_90a"
    with pytest.raises(LifecycleError, match="the bundle was closed"):
        bundle["add"]


def test_a_library_launches_from_a_bundle(tmp_path, artifacts, simulator):
    trunnion.write_bundle(tmp_path / "x.trn", {"add": artifacts["tvm_ffi", HOPPER]})
    with simulator.torch_mode(), Bundle.open(tmp_path / "x.trn") as bundle:
        adds(bundle["add"])


@pytest.mark.parametrize(
    ("capability", "target"), [((9, 0), "cuda:sm_90a"), ((8, 0), "cuda:sm_80"), ((8, 9), "cuda:sm_80")]
)
def test_the_device_decides(written, monkeypatch, capability, target):
    monkeypatch.setattr(conditions, "find_device", lambda _: capability)
    assert str(Bundle.open(written)["add"].target) == target


@pytest.mark.parametrize(
    ("capability", "said"),
    [
        (
            (10, 0),
            "is for sm_80, and device 0 is sm_100a; build one for it (target='sm_100a'), or .*on('add', device)",
        ),
        (Absence.DEVICE, "there is no device 0; name a device that is there"),
        (Absence.START, "the driver does not start; trunnion doctor says"),
        (Absence.FORKED, "this process was forked from one that had used CUDA; start processes by spawn"),
    ],
)
def test_where_nothing_fits_it_says_what_is_lacking(written, monkeypatch, capability, said):
    monkeypatch.setattr(conditions, "find_device", lambda _: capability)
    with pytest.raises(DeviceRequirementError) as caught:
        Bundle.open(written)["add"]
    for part in said.split(".*"):
        assert part in str(caught.value)


def test_ptx_that_is_newer_than_the_driver_is_not_taken(tmp_path, artifacts, simulator):
    ptx = built("nvrtc", "compute_90")
    major, minor = least_cuda(read_ptx(ptx.images["ptx"]).version)
    index = trunnion.write_bundle(tmp_path / "x.trn", {"add": [ptx, artifacts["nvrtc", HOPPER]]})
    last, first = index.programs["add"]  # where PTX is preferred
    (tmp_path / "x.trn").write_bytes(replace(index, programs={"add": (first, last)}).to_json())
    for version, lacks, kind in (
        ((12, 0), (f"its PTX needs a driver of CUDA {major}.{minor}, this one is of CUDA 12.0",), "cubin"),
        ((major, minor), (), "ptx"),
    ):
        with simulator.configured(driver_version=1000 * version[0] + 10 * version[1]):
            bundle = Bundle.open(tmp_path / "x.trn")
            assert bundle.fits("add")[0].lacks == lacks
            assert list(bundle["add"].artifact.images) == [kind]


def test_ptx_of_an_unknown_version_asks_nothing_of_the_driver(monkeypatch):
    monkeypatch.setattr(conditions, "least_cuda", lambda _: None)
    assert "driver" not in {one.fact for one in conditions.conditions_of(built("nvrtc", "compute_90"))}


def test_ptx_is_for_what_nothing_else_fits(tmp_path, artifacts, monkeypatch):
    monkeypatch.setattr(conditions, "installed_driver", lambda: SimpleNamespace(cuda=(99, 0)))
    ptx = trunnion.compile(ADD, "nvrtc", target="compute_80")
    trunnion.write_bundle(tmp_path / "x.trn", {"add": [ptx, artifacts["nvrtc", HOPPER]]})
    bundle = Bundle.open(tmp_path / "x.trn")
    for capability, kind in (((9, 0), "cubin"), ((12, 0), "ptx")):
        monkeypatch.setattr(conditions, "find_device", lambda _, here=capability: here)
        opened = Bundle.open(tmp_path / "x.trn")
        assert list(opened["add"].artifact.images) == [kind]
    assert len(bundle.fits("add")) == 2


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (Condition("host.machine", "is", "riscv128"), "it is for 'riscv128'"),
        (Condition("host.libc", "at least", "9.99"), "it needs glibc '9.99'"),
        (
            Condition("host.libstdcxx", "at least", "3.4.999"),
            "it needs a libstdc++ with GLIBCXX_3.4.999, this",
        ),
        (
            Condition("backend", "writes", "nvrtc python/0, contract 3"),
            "it was built by 'python/0, contract 3'",
        ),
        (Condition("driver", "at least", "99.0"), "its PTX needs a driver of CUDA 99.0, this one is of CUDA"),
        (Condition("driver", "at least", "new"), "does not know the version 'new'"),
        (Condition("host.level", "at least", "x86-64-v9"), "does not know the level 'x86-64-v9'"),
        (Condition("backend", "writes", "absent x"), "it needs the backend 'absent'"),
        (Condition("moon", "is", "full"), "does not know the condition 'moon is'"),
        (Condition("device", "runs", "sm_ninety"), "does not know the architecture 'sm_ninety'"),
    ],
)
def test_a_condition_that_does_not_hold_is_told(written, changed, said, simulator):
    del simulator
    bundle = Bundle.open(written)
    (variant, _) = bundle.index.programs["add"]
    index = index_of_one(bundle.index, replace(variant, conditions=(changed,)))
    written.write_bytes(index.to_json())
    with pytest.raises(
        DeviceRequirementError, match="a variant of 'add' that this machine can use"
    ) as caught:
        Bundle.open(written)["add"]
    assert said in str(caught.value)


LEVELS = ("cpu", "cpu:x86-64-v2", "cpu:x86-64-v4")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="its levels are those of x86-64")
@pytest.mark.parametrize("given", [LEVELS, LEVELS[::-1]])
@pytest.mark.parametrize(("lacks", "chosen"), [("avx512f", LEVELS[1]), ("ssse3", LEVELS[0]), ("", LEVELS[2])])
def test_the_highest_level_that_the_processor_has_is_taken(tmp_path, monkeypatch, given, lacks, chosen):
    program = examples.load("cpu_axpy").program
    variants = [built("tvm_ffi", target, program) for target in given]
    trunnion.write_bundle(tmp_path / "x.trn", {"axpy": variants})
    flags = {processor._KERNEL_NAMES.get(one, one) for one in processor.level_features("x86-64-v4")} - {lacks}
    (tmp_path / "cpuinfo").write_text(f"flags : {' '.join(sorted(flags))}\n")
    monkeypatch.setattr(processor, "_LISTED", tmp_path / "cpuinfo")
    bundle = Bundle.open(tmp_path / "x.trn")
    fits = bundle.fits("axpy")
    assert [fit.variant.target for fit in fits] == list(LEVELS[::-1])
    assert next(fit.variant.target for fit in fits if not fit.lacks) == str(bundle["axpy"].target) == chosen
    if lacks:
        assert fits[0].lacks == (f"it is for x86-64-v4, this processor lacks {lacks}",)


def test_an_index_of_before_there_were_conditions_of_level_and_driver_opens(tmp_path, simulator):
    del simulator
    axpy = built("tvm_ffi", "cpu", examples.load("cpu_axpy").program)
    index = trunnion.write_bundle(tmp_path / "x.trn", {"axpy": axpy, "add": built(target="compute_80")})
    older = {
        name: tuple(
            replace(
                one, conditions=tuple(c for c in one.conditions if c.fact not in {"driver", "host.level"})
            )
            for one in variants
        )
        for name, variants in index.programs.items()
    }
    assert older != dict(index.programs)
    (tmp_path / "x.trn").write_bytes(replace(index, programs=older).to_json())
    bundle = Bundle.open(tmp_path / "x.trn")
    assert [bundle[name].artifact.manifest.target for name in ("add", "axpy")] == ["cuda:compute_80", "cpu"]


@pytest.mark.parametrize(
    ("name", "shown"), [(None, "NoneType"), (3, "3"), ("", "''"), ("a\nb", r"'a\nb'"), (b"add", "bytes")]
)
def test_what_is_no_program_s_name_is_shown_as_what_it_is(written, name, shown):
    with pytest.raises(UnknownProgramError) as caught:
        Bundle.open(written)[name]
    assert f"argument 'program': got {shown}, expected a program" in str(caught.value)


def test_none_is_not_the_program_whose_name_is_empty(tmp_path, artifacts):
    trunnion.write_bundle(tmp_path / "x.trn", {"": artifacts["nvrtc", HOPPER]})
    with pytest.raises(UnknownProgramError):
        Bundle.open(tmp_path / "x.trn").fits(None)


def test_an_index_s_file_is_named_in_one_line(tmp_path):
    file = tmp_path / "a\nb.trn"
    file.write_bytes(b"{}")
    for ask in (Bundle.open, opened_bundles.verified):
        with pytest.raises(CorruptArtifactError, match=r"^a\\nb\.trn: got schema"):
            ask(file)


def test_an_unknown_program_is_a_key_error_with_a_suggestion(written):
    with pytest.raises(UnknownProgramError, match="did you mean 'add'"):
        Bundle.open(written)["ad"]
    with pytest.raises(KeyError):
        Bundle.open(written).fits("nothing")


# For CUDA and for the CPU -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def on_cpu():
    return built("tvm_ffi", "cpu", examples.load("cpu_axpy").program)


SORTING = """
#include <string>
#include <trunnion/block.h>
extern "C" void k(float* x, const trunnion_block_t*) { x[0] = std::to_string(x[1]).append("1").size(); }
"""


def test_the_standard_library_of_c_plus_plus_is_asked_for_where_it_is_needed(tmp_path, on_cpu, monkeypatch):
    builder = ProgramBuilder("k", DeviceCode("c++", SORTING))
    builder.launch("k", (builder.input("x", "float32", (8,), access="write"),), 1, 1)
    trunnion.write_bundle(tmp_path / "x.trn", {"axpy": on_cpu, "k": built("tvm_ffi", "cpu", builder.build())})
    asked = []
    monkeypatch.setattr(conditions, "installed_libstdcxx", lambda: asked.append(1) or "")
    bundle = Bundle.open(tmp_path / "x.trn")
    assert (bundle.fits("axpy", "cpu")[0].lacks, asked) == ((), [])
    (lack,) = bundle.fits("k", "cpu")[0].lacks
    assert lack.startswith("it needs a libstdc++ with GLIBCXX_3.4")
    assert lack.endswith(", there is none")
    monkeypatch.undo()
    assert not bundle.fits("k", "cpu")[0].lacks


@pytest.fixture
def mixed(tmp_path, artifacts, on_cpu):
    """Return a bundle that has code for the CPU, and for Hopper, of one name; and of another for the CPU alone."""
    path = tmp_path / "mixed.trn"
    trunnion.write_bundle(path, {"cpu": on_cpu, "cuda": artifacts["nvrtc", HOPPER]})
    index = Index.from_json(path.read_bytes(), "mixed.trn")
    both = (*index.programs["cuda"], *index.programs["cpu"])
    path.write_bytes(replace(index, programs={**index.programs, "both": both}).to_json())
    return Bundle.open(path)


def there(monkeypatch, capability, count=1):
    monkeypatch.setattr(
        conditions, "find_device", lambda device: capability if device < count else Absence.DEVICE
    )


def targets(bundle, name, *device):
    return [str(fit.variant.target) for fit in bundle.fits(name, *device) if not fit.lacks]


def test_on_a_gpu_the_choice_is_among_variants_for_cuda(mixed, monkeypatch):
    there(monkeypatch, (8, 0))
    with pytest.raises(
        DeviceRequirementError,
        match=r"it is for sm_90a.*it is for 'cpu', not for CUDA device 0.*'both', 'cpu'\)",
    ):
        mixed["both"]
    assert targets(mixed, "both") == []
    there(monkeypatch, (9, 0))
    assert targets(mixed, "both") == ["cuda:sm_90a"]
    assert mixed["both"].target.kind == "cuda"
    assert mixed["cpu"].target.kind == "cpu"  # there is no other


def test_without_a_gpu_what_is_for_the_cpu_is_taken(mixed, monkeypatch):
    there(monkeypatch, Absence.DEVICE)
    assert targets(mixed, "both") == ["cpu"]
    assert mixed["both"] is mixed["cpu"]


@pytest.mark.parametrize("capability", [(9, 0), (8, 0), Absence.DEVICE])
@pytest.mark.parametrize("device", ["cpu", "cpu:0", torch.device("cpu")])
def test_the_cpu_can_be_asked_for_anywhere(mixed, monkeypatch, capability, device):
    there(monkeypatch, capability)
    assert mixed.on("both", device).target.kind == "cpu"
    assert targets(mixed, "both", device) == ["cpu"]
    with pytest.raises(DeviceRequirementError, match=r"it is for 'cuda', not for the CPU.*target='cpu'"):
        mixed.on("cuda", device)


@pytest.mark.parametrize("capability", [(9, 0), Absence.DEVICE])
@pytest.mark.parametrize("name", ["both", "cpu"])
@pytest.mark.parametrize("device", [7, "cuda:7", torch.device("cuda", 7)])
def test_a_device_that_is_not_there_gets_no_program_for_the_cpu(mixed, monkeypatch, capability, name, device):
    there(monkeypatch, capability)
    with pytest.raises(DeviceRequirementError, match="not for CUDA device 7") as caught:
        mixed.on(name, device)
    assert str(caught.value).endswith(f"; the variant for the CPU is .on('{name}', 'cpu')")


def test_without_a_driver_that_is_what_is_said(written, monkeypatch):
    monkeypatch.setattr(conditions, "find_device", lambda _: Absence.DRIVER)
    for device in (None, 0, 7):
        with pytest.raises(
            DeviceRequirementError, match=r"there is no NVIDIA driver; .*install the NVIDIA driver"
        ) as caught:
            Bundle.open(written).on("add", device)
        assert "name a device" not in str(caught.value)
    with pytest.raises(DeviceRequirementError, match="target='cpu'"):
        Bundle.open(written).on("add", "cpu")


def test_in_the_child_of_a_fork_no_program_for_the_cpu_stands_in(mixed, monkeypatch):
    monkeypatch.setattr(conditions, "find_device", lambda _: Absence.FORKED)
    with pytest.raises(
        DeviceRequirementError, match=r"was forked .*start processes by spawn.*'both', 'cpu'\)"
    ):
        mixed["both"]
    assert mixed["cpu"].target.kind == "cpu"


# Where the backend alone is lacking ---------------------------------------------------------------------------------


def test_a_backend_that_is_not_installed_is_named_with_what_brings_it(written, monkeypatch):
    there(monkeypatch, (9, 0))
    bare = Bundle.open(written, registry=trunnion.Registry(entry_points=()))
    with pytest.raises(DeviceRequirementError) as caught:
        bare["add"]
    said = str(caught.value)
    assert "it needs the backend 'nvrtc', which is not installed" in said
    assert said.endswith("; install who launches it: pip install 'trunnion-nvrtc'")
    assert "build one" not in said
    there(monkeypatch, (12, 0))  # no backend helps where there is no code for the device
    with pytest.raises(DeviceRequirementError, match="build one for it"):
        bare["add"]


def test_a_backend_of_another_version_is_no_reason_to_build_for_another_target(written, monkeypatch):
    there(monkeypatch, (9, 0))
    bundle = Bundle.open(written)
    (first, _) = bundle.index.programs["add"]
    old = replace(first, conditions=(Condition("backend", "writes", "nvrtc python/0"),))
    written.write_bytes(index_of_one(bundle.index, old).to_json())
    with pytest.raises(
        DeviceRequirementError, match="install the versions that built it, or build it with those"
    ):
        Bundle.open(written)["add"]


@pytest.mark.parametrize("capability", [(9, 0), Absence.DRIVER])
@pytest.mark.parametrize("besides", [True, False])
def test_a_condition_of_a_later_version_is_what_a_newer_trunnion_knows(
    written, monkeypatch, capability, besides
):
    there(monkeypatch, capability)
    bundle = Bundle.open(written)
    (first, _) = bundle.index.programs["add"]
    new = (*first.conditions[: 2 * besides], Condition("moon", "is", "full"))
    written.write_bytes(index_of_one(bundle.index, replace(first, conditions=new)).to_json())
    with pytest.raises(DeviceRequirementError) as caught:
        Bundle.open(written)["add"]
    said = str(caught.value)
    assert said.endswith("; a newer trunnion knows that condition: pip install --upgrade trunnion")
    assert ("install the NVIDIA driver" in said) == (besides and capability is Absence.DRIVER)
    assert "build one" not in said


# What is refused ----------------------------------------------------------------------------------------------------


def test_a_part_that_is_not_here_is_named(written, simulator):
    del simulator
    part_of(written, HOPPER).unlink()
    with pytest.raises(ArtifactError, match=r"kernels\.sm_90a\.\w+\.trn' .*is not here"):
        Bundle.open(written)["add"]


def test_the_parts_that_are_here_are_verified_without_the_others(written):
    bundle = Bundle.open(written)
    assert bundle.verify_present() == ()
    ampere, hopper = part_of(written, AMPERE), part_of(written, HOPPER)
    good = ampere.read_bytes()
    ampere.unlink()
    (absent,) = bundle.verify_present()
    assert (absent,) == bundle.absent_parts()
    assert (absent.file, absent.part, absent.programs) == (ampere.name, AMPERE, tuple(bundle))
    with pytest.raises(ArtifactError, match="is not here"):
        bundle.verify()
    ampere.symlink_to("nothing")  # which nobody leaves at home on purpose
    with pytest.raises(ArtifactError, match="is not here"):
        bundle.verify_present()
    ampere.unlink()
    ampere.write_bytes(good)
    hopper.write_bytes(bytes(hopper.stat().st_size))
    with pytest.raises(CorruptArtifactError, match=HOPPER):
        bundle.verify_present()


def test_a_part_of_which_nobody_can_say_whether_it_is_here_is_an_error(written, monkeypatch):
    def refuse(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    bundle = Bundle.open(written)
    monkeypatch.setattr(os, "lstat", refuse)
    with pytest.raises(ArtifactError, match="Permission denied"):
        bundle.verify_present()


def test_nothing_there_is_named(tmp_path):
    with pytest.raises(ArtifactError, match=r"cannot open .*nothing\.trn'.*: nothing is there; name a file"):
        trunnion.load(tmp_path / "nothing.trn")


def test_a_folder_that_holds_a_bundle_is_told_apart_from_an_artifact(written):
    said = r"is a folder with a bundle in it: load the index there, which is 'kernels\.trn'$"
    with pytest.raises(ArtifactError, match=said):
        trunnion.load(written.parent)


def test_a_wheel_is_installed_and_not_loaded(tmp_path):
    wheel = tmp_path / "x-1.0-py3-none-any.whl"
    with pytest.raises(ArtifactError, match="there is nothing at"):
        trunnion.load(wheel)
    wheel.write_bytes(b"PK")
    with pytest.raises(ArtifactError, match="is a wheel: install it with pip, and import the package"):
        trunnion.load(wheel)


def test_each_byte_of_an_index_counts(written):
    good = written.read_bytes()
    for place in range(0, len(good), 7):
        written.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(CorruptArtifactError):
            Bundle.open(written)
    for cut in (0, 1, len(good) // 2, len(good) - 1):
        written.write_bytes(good[:cut])
        with pytest.raises(CorruptArtifactError):
            Bundle.open(written)


def test_no_byte_of_a_part_is_believed(written, simulator):
    del simulator
    part = part_of(written, HOPPER)
    good = part.read_bytes()
    digest = Bundle.open(written)["add"].artifact.digest
    for place in range(0, len(good), 13):
        part.write_bytes(good[:place] + bytes([good[place] ^ 0x5A]) + good[place + 1 :])
        try:
            found = Bundle.open(written)["add"].artifact.digest
        except CorruptArtifactError:
            continue
        assert found == digest  # what the archive says of dates and modes is of no account
    for cut in (0, 1, len(good) // 2, len(good) - 1):
        part.write_bytes(good[:cut])
        with pytest.raises(CorruptArtifactError):
            Bundle.open(written)["add"]


def test_a_member_before_the_part_is_refused(written, simulator):
    """The end of the directory says where that begins: what it says too much is taken from each member's place."""
    del simulator
    part = part_of(written, HOPPER)
    good = part.read_bytes()
    (begins,) = struct.unpack_from("<I", good, len(good) - 6)
    part.write_bytes(good[:-6] + struct.pack("<I", begins + len(good)) + good[-2:])
    with pytest.raises(CorruptArtifactError, match=r"begins at byte -[0-9]+ of the part"):
        Bundle.open(written)["add"]


def index_of_one(index, variant):
    """Return an index that has one of another's variants, as that is or changed, and the part that it lies in."""
    return replace(index, programs={"add": (variant,)}, parts={variant.part: index.parts[variant.part]})


def rewritten(written, change):
    """Write a part anew, with what its directory says of each member changed, and an index of its size."""
    part = part_of(written, HOPPER)
    with zipfile.ZipFile(part) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(part, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
            change(archive.getinfo(name))
    other = part.rename(part.with_name("other.trn"))  # of which no digest is in the name
    index = Index.from_json(written.read_bytes(), "kernels.trn")
    parts = {**index.parts, HOPPER: Part(other.name, other.stat().st_size)}
    written.write_bytes(replace(index, parts=parts).to_json())


@pytest.mark.parametrize("place", [1 << 40, 1 << 62, 1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("ask", [lambda bundle: bundle["add"].artifact, Bundle.verify, Bundle.files])
def test_a_member_behind_the_part_is_refused(written, ask, place, simulator):
    """The directory of a large archive has 64 bits for it, which is more than a file's place."""
    del simulator
    rewritten(written, lambda entry: setattr(entry, "header_offset", place))
    with pytest.raises(CorruptArtifactError, match=f"begins at byte {place} of the part"):
        ask(Bundle.open(written))


@pytest.mark.parametrize("more", [-1, 1, 1 << 62])
def test_a_member_of_two_sizes_is_refused(written, more, simulator):
    del simulator
    rewritten(written, lambda entry: setattr(entry, "compress_size", entry.compress_size + more))
    with pytest.raises(CorruptArtifactError, match=r"takes [0-9]+ bytes of the part, expected"):
        Bundle.open(written).verify()


def test_a_part_of_another_bundle_is_refused(written, tmp_path, artifacts, simulator):
    del simulator
    other = tmp_path / "other" / "kernels.trn"
    trunnion.write_bundle(other, {"add": artifacts["tvm_ffi", HOPPER]})
    part = part_of(written, HOPPER)
    part_of(other, HOPPER).replace(part)
    with pytest.raises(CorruptArtifactError, match=r"\.trn: has \d+ bytes, expected \d+"):
        Bundle.open(written)["add"]
    index = Index.from_json(written.read_bytes(), "kernels.trn")
    parts = {**index.parts, HOPPER: Part(part.name, part.stat().st_size)}
    written.write_bytes(replace(index, parts=parts).to_json())
    with pytest.raises(
        CorruptArtifactError, match=rf"manifest\.json: is missing from the part \(in '{part.name}'\)"
    ):
        Bundle.open(written)["add"]


def test_a_part_that_is_compressed_is_refused(written, simulator):
    del simulator
    part = part_of(written, HOPPER)
    with zipfile.ZipFile(part) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    index = Index.from_json(written.read_bytes(), "kernels.trn")
    parts = {**index.parts, HOPPER: Part(part.name, part.stat().st_size)}
    written.write_bytes(replace(index, parts=parts).to_json())
    with pytest.raises(CorruptArtifactError, match="is compressed"):
        Bundle.open(written)["add"]


@pytest.mark.parametrize("file", ["kernels.trn", "."])
def test_what_others_can_write_is_refused_unless_a_digest_vouches_for_it(written, file, simulator):
    del simulator
    digest = Bundle.open(written).digest
    (written.parent / file).chmod(0o777)
    with pytest.raises(UntrustedArtifactError, match="can be written by others"):
        Bundle.open(written)["add"]
    assert trunnion.load(written, digest=digest)["add"].artifact
    with pytest.raises(UntrustedArtifactError, match="it is another one"):
        trunnion.load(written, digest="0" * 64)


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset, iter])
def test_of_the_digests_that_are_allowed_it_must_have_one(written, simulator, kind):
    del simulator
    digest, other = Bundle.open(written).digest, "0" * 64
    written.parent.chmod(0o777)
    assert trunnion.load(written, digest=kind([other, digest]))["add"].artifact
    with pytest.raises(UntrustedArtifactError, match=f"{digest}, expected one of the 2 that are allowed"):
        trunnion.load(written, digest=kind([other, "1" * 64]))
    with pytest.raises(UntrustedArtifactError, match=f"expected {other}: it is another one"):
        trunnion.load(written, digest=kind([other]))


@pytest.mark.parametrize(
    ("digests", "error", "words"),
    [
        ([], ArgumentValueError, "got none, expected 1 to 65536 digests"),
        (itertools.repeat("0" * 64), ArgumentValueError, "got more than 65536"),
        (["0" * 64, 3], ArgumentTypeError, "a SHA-256 in hex, a list of them, or None"),
        (["0" * 64, "0" * 63], ArgumentValueError, "expected 64 digits"),
        ({"0" * 64: 1}, ArgumentTypeError, "a list of them"),
        (b"0" * 64, ArgumentTypeError, "a list of them"),
    ],
)
def test_a_list_of_what_are_no_digests_is_refused(written, simulator, digests, error, words):
    del simulator
    with pytest.raises(error, match=words):
        trunnion.load(written, digest=digests)


def test_a_pipe_does_not_hang(written, simulator):
    del simulator
    part = part_of(written, HOPPER)
    part.unlink()
    os.mkfifo(part)
    with pytest.raises(CorruptArtifactError, match="is not a plain file"):
        Bundle.open(written)["add"]
    written.unlink()
    os.mkfifo(written)
    with pytest.raises(CorruptArtifactError, match="is not a plain file"):
        Bundle.open(written)


GOOD = Variant(target="cuda:sm_90a", backend="nvrtc", part="sm_90a", digest="0" * 64, nbytes=1)


@pytest.mark.parametrize("file", ["../x.trn", "/etc/x.trn", "x.zip", "", ".trn", "a/b.trn", "x\n.trn"])
def test_a_part_that_leads_elsewhere_is_refused(file):
    with pytest.raises(CorruptArtifactError):
        Part(file, 1)


def test_a_variant_that_lies_nowhere_is_refused():
    with pytest.raises(CorruptArtifactError, match="names part 'sm_90a', and no file of it"):
        Index(programs={"p": (GOOD,)}, parts={})


def test_a_part_in_which_nothing_lies_is_refused():
    """No variant of it is read, so that nobody would see whether its bytes are what was signed."""
    parts = {"sm_90a": Part("k.sm_90a.trn", 1), "sm_80": Part("k.sm_80.trn", 1)}
    with pytest.raises(CorruptArtifactError, match="has part 'sm_80', in which no variant lies"):
        Index(programs={"p": (GOOD,)}, parts=parts)


def test_a_program_without_variants_is_refused():
    text = sealed({"schema": "trunnion.bundle/1", "parts": {}, "programs": {"add": []}})
    with pytest.raises(CorruptArtifactError, match="names no variant of 'add', expected one at least"):
        Index.from_json(text, "kernels.trn")


@pytest.mark.parametrize("changes", [{"digest": "0"}, {"nbytes": -1}])
def test_a_variant_that_cannot_be_is_refused(changes):
    with pytest.raises(CorruptArtifactError):
        replace(GOOD, **changes)


# Artifacts by themselves --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", [".", "image.cubin", "manifest.json"])
def test_an_artifact_that_others_can_write_is_refused_unless_a_digest_vouches_for_it(
    tmp_path, artifacts, changed
):
    artifact = artifacts["nvrtc", HOPPER]
    artifact.save(tmp_path / "saved")
    assert trunnion.load(tmp_path / "saved").artifact == artifact
    (tmp_path / "saved" / changed).chmod(0o777)
    with pytest.raises(UntrustedArtifactError, match="can be written by others"):
        trunnion.load(tmp_path / "saved")
    assert trunnion.load(tmp_path / "saved", digest=artifact.digest).artifact == artifact
    for given in (tmp_path / "saved", artifact):
        with pytest.raises(UntrustedArtifactError, match="it is another one"):
            trunnion.load(given, digest="0" * 64)
    with pytest.raises(ArgumentTypeError, match="a SHA-256 in hex"):
        trunnion.load(artifact, digest=3)


# What fresh eyes broke ----------------------------------------------------------------------------------------------


def test_whoever_opened_the_old_one_goes_on_and_no_reader_meets_half_of_a_new_one(
    written, artifacts, simulator
):
    del simulator
    old = Bundle.open(written)
    trunnion.write_bundle(written, {"add": artifacts["tvm_ffi", HOPPER]})
    assert old["add"].backend == "nvrtc"
    assert Bundle.open(written)["add"].backend == "tvm_ffi"
    wrong, stop = [], threading.Event()

    def read():
        while not stop.is_set():
            try:
                Bundle.open(written)["add"]
            except TrunnionError as error:
                wrong.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for backend in ("nvrtc", "tvm_ffi") * 10:
        trunnion.write_bundle(written, {"add": artifacts[backend, HOPPER]})
    stop.set()
    reader.join()
    assert not wrong


def test_a_write_that_fails_leaves_the_old_bundle(written, artifacts, monkeypatch, simulator):
    del simulator
    before = written.read_bytes()
    real = os.replace

    def failing(source, target):
        if str(target).endswith("kernels.trn"):
            raise OSError(28, "No space left on device")
        real(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(ArtifactError, match="cannot write"):
        trunnion.write_bundle(written, {"add": artifacts["tvm_ffi", HOPPER]})
    assert written.read_bytes() == before
    assert Bundle.open(written)["add"].backend == "nvrtc"
    assert not [file for file in written.parent.iterdir() if file.name.startswith(".")]


def test_folders_that_are_made_are_nobody_elses_to_write(tmp_path, artifacts, simulator):
    del simulator
    before = os.umask(0o002)
    try:
        trunnion.write_bundle(tmp_path / "new" / "below" / "x.trn", {"add": artifacts["nvrtc", HOPPER]})
    finally:
        os.umask(before)
    assert trunnion.load(tmp_path / "new" / "below" / "x.trn")["add"]


def test_in_a_folder_with_the_sticky_bit_nobody_can_exchange_anything(written, simulator):
    del simulator
    written.parent.chmod(0o1777)
    assert Bundle.open(written)["add"]


def test_links_are_followed_and_what_they_lead_to_is_judged(written, tmp_path, simulator):
    del simulator
    place = tmp_path / "elsewhere"
    place.mkdir()
    for file in written.parent.glob("*.trn"):
        (place / file.name).symlink_to(file)
    assert Bundle.open(place / "kernels.trn")["add"]
    written.parent.chmod(0o777)
    with pytest.raises(UntrustedArtifactError):
        Bundle.open(place / "kernels.trn")


def test_a_bundle_that_is_closed_while_it_is_read_leaves_nothing_open(written, monkeypatch, simulator):
    del simulator
    bundle, made = Bundle.open(written), []

    class Watched(CompiledProgram):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(opened_bundles, "CompiledProgram", Watched)
    real = opened_bundles.artifacts_in
    monkeypatch.setattr(opened_bundles, "artifacts_in", lambda *args: (bundle.close(), real(*args))[1])
    with pytest.raises(LifecycleError, match="the bundle was closed"):
        bundle["add"]
    assert [one._closed for one in made] == [True]


@pytest.mark.parametrize(
    ("device", "kind"),
    [(2**32, ArgumentValueError), (2**64, ArgumentValueError), ("mps", ArgumentTypeError),
     (True, ArgumentTypeError), (1.0, ArgumentTypeError), ([], ArgumentTypeError), ("x", ArgumentTypeError)],
)  # fmt: skip
def test_what_is_no_device_is_refused(written, device, kind, simulator):
    del simulator
    for ask in (Bundle.open(written).on, Bundle.open(written).fits):
        with pytest.raises(kind):
            ask("add", device)


def test_one_variant_is_one_program_on_every_device(written, simulator):
    del simulator
    bundle = Bundle.open(written)
    assert bundle.on("add", 0) is bundle["add"]


@pytest.mark.parametrize("name", [[], 3, None, b"add"])
def test_what_is_no_name_is_in_no_bundle(written, name):
    bundle = Bundle.open(written)
    assert name not in bundle
    assert bundle.get(name, "nothing") == "nothing"


@pytest.mark.parametrize(
    "changes",
    [{"nbytes": 1}, {"target": "cuda:sm_80"}, {"backend": "tvm_ffi"}],
    ids=lambda changes: next(iter(changes)),
)
def test_what_the_index_says_of_an_artifact_is_compared_with_it(written, changes, simulator):
    del simulator
    index = Index.from_json(written.read_bytes(), "kernels.trn")
    (first, *_) = index.programs["add"]
    written.write_bytes(index_of_one(index, replace(first, **changes)).to_json())
    with pytest.raises(CorruptArtifactError, match="what its manifest does not"):
        Bundle.open(written)["add"]


@pytest.mark.parametrize("fact", ["host.libc", "host.libstdcxx"])
@pytest.mark.parametrize("version", ["9" * 5000, "", "whatever", "2.x"])
def test_a_version_that_is_none_holds_nowhere(fact, version):
    lack = Condition(fact, "at least", version).lack(conditions.Machine(0, trunnion.default_registry()))
    assert "does not know the version" in lack


def test_an_index_is_a_value(written):
    index = Index.from_json(written.read_bytes(), "kernels.trn")
    assert pickle.loads(pickle.dumps(index)) == index  # noqa: S301 - its own
    assert len({index, Index.from_json(written.read_bytes(), "kernels.trn")}) == 1
    assert index.digest == Bundle.open(written).digest


def test_a_part_is_not_an_index(written):
    with pytest.raises(
        CorruptArtifactError, match="is a part of a bundle, or another archive; open its index"
    ):
        trunnion.load(part_of(written, HOPPER))


@pytest.mark.parametrize("digest", ["0" * 63, "A" * 64, " " + "0" * 63, "sha256:" + "0" * 64])
def test_a_digest_that_is_none_is_said_to_be_none(written, digest):
    with pytest.raises(ArgumentValueError, match="64 digits"):
        trunnion.load(written, digest=digest)


def test_names_that_are_too_long_and_no_working_folder_are_typed_errors(tmp_path, monkeypatch):
    with pytest.raises(ArtifactError):
        trunnion.load("x" * 5000 + ".trn")
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(ArtifactError):
        trunnion.load("kernels.trn")
    with pytest.raises(ArtifactError):
        trunnion.write_bundle("kernels.trn", {})


def test_a_folder_in_the_place_of_the_index_is_refused_before_anything_is_written(tmp_path, artifacts):
    (tmp_path / "x.trn").mkdir()
    with pytest.raises(ArtifactError, match="a folder is at"):
        trunnion.write_bundle(tmp_path / "x.trn", {"add": artifacts["nvrtc", HOPPER]})
    assert [file.name for file in tmp_path.iterdir()] == ["x.trn"]


class Lying:
    """Something that says that it has whatever it is asked for, until it is asked for an allocation."""

    def __getattr__(self, name):
        if name == "allocate":
            raise SystemExit
        return name


@pytest.mark.parametrize("runtime", [3, "torch", torch, Lying()], ids=["3", "text", "torch", "lying"])
def test_what_is_no_runtime_is_refused_wherever_one_is_passed(written, artifacts, runtime):
    for opening in (
        lambda: Bundle.open(written, runtime=runtime),
        lambda: CompiledProgram.from_artifact(artifacts["nvrtc", HOPPER], runtime=runtime),
    ):
        with pytest.raises(ArgumentTypeError, match="a Runtime, or None: it has no"):
            opening()


def test_what_stands_under_two_programs_is_verified_in_both_parts(written, tmp_path):
    index = trunnion.Bundle.open(written).index
    (variant, *_) = index.programs["add"]
    (written.parent / "junk.trn").write_bytes(b"junk!")
    twice = replace(
        index,
        programs={**index.programs, "aaa": (replace(variant, part="junk"),)},
        parts={**index.parts, "junk": Part("junk.trn", 5)},
    )
    written.write_bytes(twice.to_json())
    with pytest.raises(CorruptArtifactError, match="junk"):
        trunnion.Bundle.open(written).files()
    with pytest.raises(CorruptArtifactError, match="junk"):
        trunnion.Lock.of([written], written.parent / "trunnion.lock")


def test_the_bytes_that_are_returned_are_those_that_were_verified(tmp_path, artifacts, monkeypatch):
    """Whoever exchanges a part meanwhile gets nothing into what is exported, stated and signed."""
    trunnion.write_bundle(tmp_path / "x.trn", {"add": artifacts["nvrtc", HOPPER]})
    part = part_of(tmp_path / "x.trn", HOPPER)
    good, real = part.read_bytes(), parts._artifact

    def exchanged(*given):
        artifact = real(*given)
        part.write_bytes(bytes(len(good)))
        return artifact

    monkeypatch.setattr(parts, "_artifact", exchanged)
    assert Bundle.open(tmp_path / "x.trn").files()[part.name] == good


def test_variants_that_are_called_otherwise_are_found_where_the_index_is_not_ours(mixed):
    with pytest.raises(ProgramError, match="the variants of 'both' take different parameters"):
        mixed.verify()
    with pytest.raises(ProgramError, match="the variants of 'both' take different parameters"):
        trunnion.Lock.of([mixed.file], mixed.file.with_name("trunnion.lock"))


def test_the_name_of_another_bundle_s_part_is_not_taken(written):
    part = part_of(written, AMPERE)
    before = part.read_bytes()
    with pytest.raises(ArgumentValueError, match="as a part of a bundle is called"):
        trunnion.write_bundle(part, {})
    assert part.read_bytes() == before


@pytest.mark.parametrize("ask", [Bundle.files, Bundle.verify, Bundle.verify_present])
def test_bytes_of_a_part_that_are_no_artifact_s_are_its_own_too(written, ask):
    part = part_of(written, AMPERE)
    part.write_bytes(part.read_bytes()[:-1] + b"X")
    with pytest.raises(CorruptArtifactError, match="another one than it is named by"):
        ask(Bundle.open(written))


def test_a_bundle_is_one_thing_of_the_process(written):
    bundle = Bundle.open(written)
    with pytest.raises(LifecycleError, match=r"'kernels\.trn' .* pass its path, and trunnion.load it"):
        pickle.dumps(bundle)
    assert copy.copy(bundle) is copy.deepcopy(bundle) is bundle


def test_an_index_that_could_not_be_read_again_is_not_written(tmp_path, artifacts):
    name = "x" * MAX_INDEX_BYTES
    with pytest.raises(ArtifactError, match=f"expected at most {MAX_INDEX_BYTES}"):
        trunnion.write_bundle(tmp_path / "kernels.trn", {name: artifacts["nvrtc", HOPPER]})
    assert not list(tmp_path.iterdir())
