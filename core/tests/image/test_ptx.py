from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunnion.contract.compiler import ImageParameter
from trunnion.errors import CorruptArtifactError
from trunnion.image.cubin import KernelInfo
from trunnion.image.layout import pack_parameters
from trunnion.image.ptx import least_cuda, read_ptx

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n"
WHOLE = (
    HEAD
    + r"""
// .visible .entry commented() { }
/* .visible .entry commented2() { } */
.file 1 "folder//.entry quoted() {"
.extern .func (.param .b32 func_retval0) elsewhere (.param .b64 p);
.func declared;
.visible .func (.param .b32 func_retval0) helper(.param .b32 helper_param_0)
{ .reg .b32 %r<4>; { ret; } }
.visible .global .align 4 .u32 counter = 4;
.visible .const .align 4 .b8 table[12] = {1, 2, 3};
.weak .global .align 4 .u32 merged;
.extern .shared .align 16 .b8 dynamic[];
.global .attribute(.managed) .align 8 .b64 hidden;
.visible .entry big(
	.param .align 64 .b8 big_param_0[128],
	.param .u64 .ptr .global .align 16 big_param_1,
	.param .u8 big_param_2,
	.param .f64 big_param_3
)
.maxntid 128, 2
.minnctapersm 2
.maxclusterrank 8
{
	// } is no end
	.reg .b64 %rd<4>;
	{ }
	ret;
}
.weak .entry small()
.explicitcluster
.reqnctapercluster 2, 1, 1
.reqntid 64, 1, 1
{ ret; }
.entry internal(.param .b32 x) .blocksareclusters { ret; }
.section .debug_info { .b32 1 }
"""
)


def test_what_a_text_says() -> None:
    info = read_ptx(WHOLE)
    assert (info.version, info.target) == ("9.0", "sm_90a")
    assert info.kernels == (
        KernelInfo(
            name="big",
            parameters=pack_parameters([(128, 64), (8, 8), (1, 1), (8, 8)], "sm_90a"),
            max_threads=(128, 2, 1),
            max_cluster_blocks=8,
        ),
        KernelInfo(name="small", required_threads=(64, 1, 1), cluster=(2, 1, 1)),
        KernelInfo(name="internal", parameters=(ImageParameter(0, 0, 4),), grid_counts_clusters=True),
    )
    assert info.definitions == ("helper", "counter", "table", "big")
    assert info.kernel("small") is info.kernels[1]
    assert info.kernel("commented") is None


def test_bytes_with_nuls_at_their_end() -> None:
    assert read_ptx(WHOLE.encode() + b"\0\0") == read_ptx(WHOLE)
    with pytest.raises(CorruptArtifactError, match="UTF-8"):
        read_ptx(b"\xff")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "starts with"),
        ("int x;", "starts with 'int'"),
        ("\x7fELF", "starts with"),
        (".version 9.0", "ends too early"),
        (".version x\n.target sm_90", "no version"),
        (".version 9.0 .target x90", "x90"),
        (".version 9.0 .target sm_999", "sm_999"),
        (".version 9.0 .target sm_90 .address_size 32\n", "32"),
        (HEAD + ".entry k(", "ends too early"),
        (HEAD + ".entry k(.param .u32 a", "ends too early"),
        (HEAD + ".entry k() {", "ends too early"),
        (HEAD + ".entry k() { { }", "ends too early"),
        (HEAD + ".entry k(.param .texref a) { }", "texref"),
        (HEAD + ".entry k(.reg .u32 a) { }", "does not start with .param"),
        (HEAD + ".entry k(.param a) { }", "no size"),
        (HEAD + ".entry k(.param .b8 a[0]) { }", "no size"),
        (HEAD + ".entry k(.param .b8 a[N]) { }", "expected a number"),
        (HEAD + ".entry k(.param .b8 a[4)) { }", "plain number"),
        (HEAD + ".entry k(.param .align 3 .b8 a[4]) { }", "aligned to 3"),
        (HEAD + ".entry k(.param .align x .b8 a[4]) { }", "expected a number"),
        (HEAD + ".entry k(.param .u32 a; .param .u32 b) { }", "list of parameters"),
        (".version 9.0 .target compute_90", "expected one such as sm_90a"),
        (".version 9.0 .target sm_9", "expected one such as sm_90a"),
        (HEAD + ".entry k() .maxntid 1,2,3,4 { }", "4 dimensions"),
        (HEAD + ".entry k() .maxntid 0 { }", "where 1 is the least"),
        (HEAD + ".entry k() .reqntid 32, 0x0 { }", "where 1 is the least"),
        (HEAD + ".entry k() .reqnctapercluster 2, 1, 0 { }", "where 1 is the least"),
        (HEAD + ".entry k() { } .entry k() { }", "two kernels"),
    ],
)
def test_what_is_no_ptx_is_refused(text: str, said: str) -> None:
    with pytest.raises(CorruptArtifactError) as caught:
        read_ptx(text)
    assert said in str(caught.value)


def test_comments_that_nobody_closes_are_read_once() -> None:
    """Each of them read to the end of the text for nothing: of so many that took longer than any test may."""
    open_ones = "/* " * 200_000
    for text in (open_ones, f".visible .entry k()\n{{ {open_ones}", f".visible .entry k({open_ones}"):
        with contextlib.suppress(CorruptArtifactError):
            assert not read_ptx((HEAD + text).encode()).kernels


def test_only_a_header_is_a_text_without_kernels() -> None:
    assert read_ptx(HEAD).kernels == ()
    assert read_ptx(".version 7.8\n.target sm_80, debug\n").target == "sm_80"


TYPES = [("b8", 1), ("u16", 2), ("bf16", 2), ("s32", 4), ("f16x2", 4), ("f64", 8), ("b128", 16)]
PARAMETERS = st.tuples(
    st.sampled_from(TYPES),
    st.none() | st.integers(1, 4000),
    st.none() | st.sampled_from([1, 2, 4, 8, 16, 64, 128]),
)


@given(st.lists(PARAMETERS, max_size=12), st.sampled_from(["sm_80", "sm_90a", "sm_100f"]))
def test_every_declaration_is_read_back(parameters, target) -> None:
    lines, layouts = [], []
    for index, ((kind, size), count, alignment) in enumerate(parameters):
        aligned = f".align {alignment} " if alignment else ""
        lines.append(f".param {aligned}.{kind} p{index}" + (f"[{count}]" if count else ""))
        layouts.append((size * (count or 1), alignment or size))
    text = (
        f".version 9.0\n.target {target}\n.address_size 64\n.visible .entry k({', '.join(lines)}) {{ ret; }}"
    )
    (kernel,) = read_ptx(text).kernels
    assert kernel.parameters == pack_parameters(layouts, target)


@settings(max_examples=300)
@given(st.integers(0, len(WHOLE)), st.text(alphabet=' \n{}()[];,.=*/"abe0%$', max_size=6), st.integers(0, 20))
def test_damage_ends_in_one_kind_of_error(at: int, noise: str, cut: int) -> None:
    with contextlib.suppress(CorruptArtifactError):
        read_ptx(WHOLE[:at] + noise + WHOLE[at + cut :])


def test_static_shared_memory_is_counted_where_it_is_used() -> None:
    text = """.shared .align 4 .b8 all[28];
.extern .shared .align 16 .b8 dynamic[];
.visible .entry a() { .shared .align 8 .b8 own[3]; { .shared .u32 inner; } mov.u32 %r1, all; }
.visible .entry b() { mov.u32 %r1, dynamic; mov.u32 %r2, other_all; // all
}
.visible .entry c() { .shared .align 4 .b8 matrix[4][8]; }
"""
    info = read_ptx(HEAD + text)
    assert [kernel.static_smem_bytes for kernel in info.kernels] == [4 + 28 + 4, 0, 32]


@pytest.mark.parametrize(
    ("declaration", "nbytes"),
    [
        (".v4 .f32 q[64]", 1024),
        (".align 16 .v2.b64 q[3]", 48),
        (".b8 small; .shared .v4 .b16 q", 9),
        (".f16x2 pairs[4]", 16),
        (".b128 wide[2]", 32),
        (".align 4611686018427387904 .b8 q[7]", 7),
        (".b8 most[9223372036854775807]", 2**63 - 1),
        (".b8 none[0]", 0),
        (".align 0x10 .b8 q[0x100]", 256),
        (".b8 q[0b101]; .shared .b8 r[017U]", 5 + 15),
        (".f32 s[100], t[50], u", 604),
        (".b8 q [ 3 ] [ 2 ]", 6),
    ],
)
def test_the_room_of_a_shared_variable_follows_from_its_declaration(declaration: str, nbytes: int) -> None:
    info = read_ptx(f"{HEAD}.entry k() {{ .shared {declaration}; ret; }}")
    assert info.kernels[0].static_smem_bytes == nbytes


def test_variables_of_one_name_in_blocks_beside_one_another_have_room_each() -> None:
    text = "{ .shared .align 4 .b8 a[64]; } { .shared .align 4 .b8 a[128]; } { .shared .b8 a[8]; }"
    (kernel,) = read_ptx(f"{HEAD}.entry k() {{ {text} }}").kernels
    assert kernel.static_smem_bytes == 64 + 128 + 8  # as ptxas of CUDA 13.0 counts


def test_attributes_with_parentheses_of_their_own() -> None:
    info = read_ptx(
        HEAD
        + """.func .attribute(.unified(1,2)) f () { .shared .b8 own[64]; ret; }
.func .attribute(.unified(3,4)) (.param .b32 r) g () { .shared .b8 own[32]; ret; }
.global .attribute(.managed, .unified(5,6)) .align 4 .b32 u[3], v;
.entry k() { call f; call (r), g; }
"""
    )
    assert info.kernels[0].static_smem_bytes == 64 + 32
    assert [(one.name, one.nbytes, one.managed) for one in info.variables] == [
        ("u", 12, True),
        ("v", 4, True),
    ]


FUNCTIONS = """.shared .b8 all[3];
.func late() { mov.u32 %r1, all; { .shared .align 8 .b8 own[8]; } }
.func loop() { .shared .b32 a; call loop; call late, (); ret; }
.func other() { .shared .b32 a; ret; }
.visible .func named();
.alias named, other;
"""


@pytest.mark.parametrize(
    ("body", "nbytes"),
    [
        ("call late, ();", 8 + 3),
        ("call loop;", 8 + 4 + 3),
        ("call loop; call other; mov.u32 %r1, all;", 8 + 4 + 4 + 3),
        ("call named; .shared .b32 a;", 4 + 4),
        ("// call late\n", 0),
    ],
)
def test_shared_memory_of_a_function_counts_for_the_kernels_that_reach_it(body: str, nbytes: int) -> None:
    (kernel,) = read_ptx(f"{HEAD}.visible .entry k() {{ {body} ret; }}\n{FUNCTIONS}").kernels
    assert kernel.static_smem_bytes == nbytes


def test_kernels_and_functions_that_reach_all_of_each_other_end_soon() -> None:
    calls = "".join(f"call f{index}; " for index in range(1200))
    functions = "".join(f".func f{index}() {{ .shared .b8 a; {calls} }}\n" for index in range(1200))
    with pytest.raises(CorruptArtifactError, match="calls lead to shared memory"):
        read_ptx(f"{HEAD}{functions}.entry k() {{ call f0; }}")


@pytest.mark.parametrize(
    ("text", "defined"),
    [
        (".visible .global .u32 a, b[3];", ["a", "b"]),
        (".visible .const .u32 a = 1, b[2] = {1, 2}, c = generic(a);", ["a", "b", "c"]),
        (".extern .global .u32 a, b;", []),
        (".visible .func g(.param .b32 p); .func f() { ret; } .alias g, f;", ["g"]),
        (".func g(); .visible .func f() { ret; } .alias g, f;", ["f"]),
        ('.visible .func f() .pragma "nounroll"; { ret; }', ["f"]),
    ],
)
def test_what_a_text_defines(text: str, defined: list[str]) -> None:
    assert [*read_ptx(HEAD + text).definitions] == defined


def test_variables_of_one_declaration() -> None:
    found = read_ptx(
        HEAD
        + ".visible.global.align 8 .v2.f32 a, b[3];.const .attribute(.managed) .u8 c[0x10] = {1,2}, d[N];"
    )
    assert [(one.name, one.nbytes, one.constant, one.managed) for one in found.variables] == [
        ("a", 8, False, False),
        ("b", 24, False, False),
        ("c", 16, True, True),
        ("d", None, True, True),
    ]


def test_a_pragma_between_parameters_and_body_is_passed_over() -> None:
    (kernel,) = read_ptx(
        HEAD + '.entry k(.param .u8 a) .pragma "nounroll", "used"; .maxntid 0x80U, 1 { ret; }'
    ).kernels
    assert (kernel.name, kernel.max_threads, len(kernel.parameters)) == ("k", (128, 1, 1), 1)


@pytest.mark.parametrize("number", ["0x", "0b2", "09", "1.5", "-1", "1U2", "0x1FFFFFFFF", "9" * 5000])
def test_a_bound_that_is_no_number_of_32_bits_is_refused(number: str) -> None:
    with pytest.raises(CorruptArtifactError, match="expected a number"):
        read_ptx(f"{HEAD}.entry k() .maxntid {number} {{ }}")


@pytest.mark.parametrize(
    ("declaration", "said"),
    [
        (".align 0 .b8 x[1]", "'x' is aligned to '0', expected a power of two"),
        (".align 24 .b8 x[1]", "'x' is aligned to '24'"),
        (".align 9223372036854775808 .b8 x[1]", "'x' is aligned to '9223372036854775808'"),
        (f".align {'9' * 5000} .b8 x[1]", "'x' is aligned to '999"),
        (".b8 x[9223372036854775808]", "'x' has more than 9223372036854775807 bytes"),
        (f".b8 x[{'9' * 5000}]", "'x' has more than"),
        (".v2 .f32 x" + "[999999999999999]" * 400, "'x' has more than"),
    ],
)
@pytest.mark.parametrize("place", ["module", "body"])
def test_room_that_no_address_reaches_is_refused(declaration: str, said: str, place: str) -> None:
    module, body = (f".shared {declaration};" if one == place else "" for one in ("module", "body"))
    with pytest.raises(CorruptArtifactError) as caught:
        read_ptx(f"{HEAD}{module} .entry k() {{ {body} }}")
    assert said in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("space", [".global", ".const"])
def test_a_variable_larger_than_any_memory_is_refused(space: str) -> None:
    (most,) = read_ptx(f"{HEAD}{space} .b8 x[9223372036854775807];").variables
    assert most.nbytes == 2**63 - 1
    for extents in ("[9223372036854775808]", f"[{'9' * 5000}]", "[999999999999999]" * 400):
        with pytest.raises(CorruptArtifactError, match="'x' has more than"):
            read_ptx(f"{HEAD}{space} .b8 x{extents};")


@pytest.mark.parametrize(
    "text",
    [
        ".a" * 400_000,
        "".join(f".entry k{index}{{}}\n" for index in range(20_000)),
        f".entry k() {{ .shared .b8 q[{' ' * 400_000}; }}",
        f".entry k() {{ .shared .b8 q{'[ ' * 200_000}; }}",
    ],
    ids=["types", "kernels", "room in brackets", "brackets"],
)
def test_a_long_text_costs_as_much_as_it_is_long(text: str) -> None:
    started = time.thread_time()
    read_ptx(HEAD + text)
    assert time.thread_time() - started < 8


def test_parameters_lie_where_the_assembler_of_an_architecture_puts_them() -> None:
    text = HEAD + ".entry k(.param .u8 a, .param .align 64 .b8 b[128]) {}"
    for arch in ("sm_80", "sm_90a", "sm_100a"):
        assert read_ptx(text, arch).kernels[0].parameters == pack_parameters(((1, 1), (128, 64)), arch)


@pytest.mark.parametrize(
    ("version", "cuda"),
    [
        ("6.3", (10, 0)),
        ("6.5", (10, 2)),
        ("7.8", (11, 8)),
        ("8.0", (12, 0)),
        ("8.5", (12, 5)),
        ("8.6", (12, 7)),
        ("8.8", (12, 9)),
        ("9.0", (13, 0)),
        ("9.2", (13, 2)),
        ("9.3", None),
        ("10.0", None),
    ],
)
def test_the_driver_that_reads_a_version(version, cuda):
    assert least_cuda(version) == cuda


@pytest.mark.parametrize("bound", [".reqnctapercluster 0", ".reqnctapercluster 0, 0, 0", ".maxclusterrank 0"])
def test_a_cluster_of_none_is_no_bound(bound: str) -> None:
    """As the assembler takes it, which writes no record of one (CUDA 13.0)."""
    (kernel,) = read_ptx(f"{HEAD}.entry k() .explicitcluster {bound} {{ }}").kernels
    assert kernel == KernelInfo(name="k", needs_cluster=True)
