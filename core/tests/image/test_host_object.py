"""Host objects: what the compiler of this machine writes is read, and nothing that is damaged is believed."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from trunnion.errors import CorruptArtifactError
from trunnion.image import SyntheticKernel, read_host_object, synthetic_cubin
from trunnion.image.elf import EHDR, HOST_OBJECT, SHDR, read_elf

SOURCE = """
#define HIDDEN __attribute__((visibility("hidden"), used))
extern int needed(int);
extern int perhaps(int) __attribute__((weak));
HIDDEN const unsigned long long table[3] = {2, 1ull << 40, 7};
HIDDEN unsigned char zeros[16];
int common(int x) { return needed(x) + (perhaps ? perhaps(x) : 0); }
__attribute__((weak)) int optional(void) { return 5; }
static int own(void) { return 1; }
int (*const pointer)(void) = own;
int (*const shared)(int) = common;
int (*const elsewhere)(int) = needed;
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    compiler = shutil.which("cc") or shutil.which("gcc") or "c++"
    folder = tmp_path_factory.mktemp("object")
    Path(folder, "object.c").write_text(SOURCE)
    subprocess.run([compiler, "-fPIC", "-O1", "-c", "object.c"], cwd=folder, check=True)
    return Path(folder, "object.o").read_bytes()


def test_names_and_constants_are_read(data: bytes) -> None:
    found = read_host_object(data, ["table"])
    assert {"table", "zeros", "common", "optional", "pointer"} <= set(found.definitions)
    assert "own" not in found.definitions
    assert "needed" in found.references
    assert not {"perhaps", "common", "own"} & set(found.references)
    assert struct.unpack("<3Q", found.constants["table"]) == (2, 1 << 40, 7)
    assert read_host_object(data).constants == {}


def test_a_pointer_says_what_it_is_the_address_of(data: bytes) -> None:
    found = read_host_object(data, pointers=["pointer", "shared", "elsewhere"])
    assert found.pointers == {"pointer": "", "shared": "common", "elsewhere": "needed"}
    for name, problem in (("table", "'table' is the address of nothing"), ("none", "no pointer 'none'")):
        with pytest.raises(CorruptArtifactError) as caught:
            read_host_object(data, pointers=[name])
        assert caught.value.problem == problem
    damaged = bytearray(data)
    (relocations,) = (one for one in read_elf(data, HOST_OBJECT).sections if one.name == ".rela.data.rel.ro")
    for at in range(relocations.offset, relocations.offset + relocations.size, 24):
        struct.pack_into("<I", damaged, at + 12, 1 << 30)
    with pytest.raises(CorruptArtifactError, match="a relocation to symbol 1073741824"):
        read_host_object(bytes(damaged), pointers=["elsewhere"])


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("none", "no constant 'none'"),
        ("needed", "no constant 'needed'"),
        ("own", "no constant 'own'"),
        ("zeros", "constant 'zeros' has 16 bytes at"),
        ("\n", r"no constant '\n'"),
    ],
)
def test_what_is_no_constant_is_refused(data: bytes, name: str, problem: str) -> None:
    with pytest.raises(CorruptArtifactError) as caught:
        read_host_object(data, [name])
    assert caught.value.what == "host object"
    assert caught.value.problem.startswith(problem)


def test_a_constant_that_reaches_beyond_its_section_is_refused(data: bytes) -> None:
    elf = read_elf(data, HOST_OBJECT)
    symbols = elf.symbols()
    index = elf.symbol_names(symbols).index("table")
    at = elf.symbol_table().offset + index * 24
    for position, value in ((8, 1 << 63), (16, 1 << 40)):
        damaged = bytearray(data)
        struct.pack_into("<Q", damaged, at + position, value)
        with pytest.raises(CorruptArtifactError, match="constant 'table' has"):
            read_host_object(bytes(damaged), ["table"])
    for section in (len(elf.sections), 0xFFF1):
        damaged = bytearray(data)
        struct.pack_into("<H", damaged, at + 6, section)
        with pytest.raises(CorruptArtifactError, match=f"is in section {section}"):
            read_host_object(bytes(damaged), ["table"])


def test_every_cut_of_an_object_is_refused(data: bytes) -> None:
    sections_at = EHDR.unpack_from(data)[6]
    for length in (0, 3, EHDR.size - 1, EHDR.size, sections_at, sections_at + SHDR.size, len(data) - 1):
        with pytest.raises(CorruptArtifactError):
            read_host_object(data[:length], ["table"])


def test_other_files_are_refused_by_what_they_are(data: bytes) -> None:
    linked = bytearray(data)
    struct.pack_into("<H", linked, 16, 3)
    for other, problem in (
        (synthetic_cubin([SyntheticKernel(name="k")]), "an ELF file for machine 190, where x86-64 is 62 and"),
        (bytes(linked), "ELF type 3, where 1 is allowed"),
        (b"!<arch>\n", "an archive, not an object"),
        (b"BC\xc0\xde", "LLVM bitcode, not an object"),
        (b"int main;", "not an ELF file: it starts with"),
    ):
        with pytest.raises(CorruptArtifactError) as caught:
            read_host_object(other)
        assert caught.value.what == "host object"
        assert caught.value.problem.startswith(problem)
