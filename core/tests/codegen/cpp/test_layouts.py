"""Headers that mean other bytes than launchers were written for are refused, and what Python numbers is as they say."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from trunnion.codegen.cpp.build import runtime_folder
from trunnion.model.dtypes import DTYPES
from trunnion.model.launch_attributes import LAUNCH_ATTRIBUTES, ClusterSchedulingPolicy, MemSyncDomain
from trunnion.model.tensormap import Interleave, L2Promotion, OobFill, Swizzle, TensorMapDataType
from trunnion.model.window import AccessProperty
from trunnion.toolchain.host import find_host_toolchain

pytestmark = pytest.mark.tvm_ffi_abi

LAYOUTS = "#include <trunnion/launch_runtime.hpp>\n#include <trunnion/driver_layouts.cc>\n"
DLPACK_CODES = {
    0: "kDLInt",
    1: "kDLUInt",
    2: "kDLFloat",
    4: "kDLBfloat",
    5: "kDLComplex",
    6: "kDLBool",
    10: "kDLFloat8_e4m3fn",
    11: "kDLFloat8_e4m3fnuz",
    12: "kDLFloat8_e5m2",
    13: "kDLFloat8_e5m2fnuz",
    14: "kDLFloat8_e8m0fnu",
    17: "kDLFloat4_e2m1fn",
}
WORDS = {
    "CU_TENSOR_MAP_INTERLEAVE_": Interleave,
    "CU_TENSOR_MAP_SWIZZLE_": Swizzle,
    "CU_TENSOR_MAP_L2_PROMOTION_": L2Promotion,
    "CU_TENSOR_MAP_FLOAT_OOB_FILL_": OobFill,
    "CU_TENSOR_MAP_DATA_TYPE_": TensorMapDataType,
    "CU_ACCESS_PROPERTY_": AccessProperty,
    "CU_CLUSTER_SCHEDULING_POLICY_": ClusterSchedulingPolicy,
    "CU_LAUNCH_MEM_SYNC_DOMAIN_": MemSyncDomain,
}
CHANGES = [
    ("tvm/ffi/c_api.h", r"(uint64_t combined_ref_count;)", r"\1 uint64_t more;", "TVMFFIObject"),
    ("tvm/ffi/c_api.h", r"(  int32_t type_index;\n#if)", r"  int64_t more;\n\1", "TVMFFIAny"),
    ("tvm/ffi/c_api.h", r"TVMFFIByteArray kind;", "void* more; TVMFFIByteArray kind;", "TVMFFIErrorCell"),
    ("tvm/ffi/c_api.h", r"kTVMFFIBytes = 66,", "kTVMFFIBytes = 99,", "TVMFFITypeIndex"),
    ("dlpack/dlpack.h", r"int64_t\* shape;", "int64_t* more; int64_t* shape;", "DLTensor"),
    ("dlpack/dlpack.h", r"(  void \*manager_ctx;)", r"  void* more;\n\1", "DLManagedTensorVersioned"),
    ("dlpack/dlpack.h", r"(  DLPackExchangeAPIHeader header;)", r"\1 void* more;", "DLPackExchangeAPI"),
    ("cuda.h", r"(    unsigned int sharedMemBytes;)", r"    void* more;\n\1", "CUlaunchConfig"),
    ("cuda.h", r"(    float hitRatio;)", r"    float more;\n\1", "CUaccessPolicyWindow"),
]


def compiled(text, *folders):
    """Return what the compiler says of a text; folders that come first hide those of the toolchain."""
    toolchain = find_host_toolchain("acme")
    include = [f"-I{folder}" for folder in (*folders, runtime_folder(), *toolchain.include_folders)]
    words = [*toolchain.compiler.command, "-std=c++17", "-fsyntax-only", *include, "-x", "c++", "-"]
    return subprocess.run(words, input=text, capture_output=True, text=True, check=False).stderr


def header(name):
    """Return where a header is found."""
    places = (Path(folder, name) for folder in find_host_toolchain("acme").include_folders)
    return next(place for place in places if place.is_file())


def test_the_headers_of_this_machine_have_them(cxx) -> None:
    assert not compiled(LAYOUTS)


@pytest.mark.parametrize(("name", "pattern", "changed", "said"), CHANGES, ids=[row[3] for row in CHANGES])
def test_another_layout_is_refused(cxx, tmp_path, name, pattern, changed, said) -> None:
    place = header(name)
    # All of the folder, so that what includes the header beside it finds this one.
    shutil.copytree(place.parent, tmp_path / Path(name).parent, dirs_exist_ok=True)
    text, count = re.subn(pattern, changed, place.read_text())
    assert count
    (tmp_path / name).write_text(text)
    assert f"another {said} than the one written for" in compiled(LAYOUTS, tmp_path)


def test_what_python_numbers_is_as_the_headers_say(cxx) -> None:
    facts = [f"{DLPACK_CODES[row.dlpack[0]]} == {row.dlpack[0]}" for row in DTYPES.values()]
    facts += [f"{prefix}{row.word.upper()} == {row.code}" for prefix, rows in WORDS.items() for row in rows]
    facts += [f"CU_LAUNCH_ATTRIBUTE_{row.driver_name} == {row.id}" for row in LAUNCH_ATTRIBUTES]
    text = LAYOUTS + "".join(f'static_assert({fact}, "{fact}");\n' for fact in facts)
    assert not compiled(text)
    assert "CU_ACCESS_PROPERTY_NORMAL == 1" in compiled(
        LAYOUTS + 'static_assert(CU_ACCESS_PROPERTY_NORMAL == 1, "CU_ACCESS_PROPERTY_NORMAL == 1");\n'
    )


def test_big_integers_have_the_index_that_newer_headers_name(cxx) -> None:
    text = LAYOUTS + "static_assert(trunnion::kBigInt == kTVMFFIBigInt);\n"
    newer = "kTVMFFIBigInt" in header("tvm/ffi/c_api.h").read_text()
    assert (not compiled(text)) is newer
