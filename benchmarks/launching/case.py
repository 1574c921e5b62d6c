"""`Case`: how many tensors, tensor maps and scalars a launch takes, its kernel, and the program that describes it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import trunnion
from trunnion import DeviceCode, ProgramBuilder, Symbol, ceildiv, const

if TYPE_CHECKING:
    from trunnion import KernelProgram

__all__ = [
    "BESIDE_OTHERS",
    "BUDGETED",
    "CASES",
    "FOLLOWING",
    "KERNEL",
    "LANDED",
    "MEBIBYTE_SHIFT",
    "MIXED",
    "SHAPE",
    "THREADS",
    "Case",
    "Number",
]

KERNEL = "receive"
"""The kernel's symbol."""

THREADS = 128
"""Threads of a block."""

SHAPE = (16, 64)
"""Every tensor: rows and columns of float32. One box of a tensor map covers it."""

MEBIBYTE_SHIFT = 20
"""Without tensors, the scalar is the address to write to, in units of 1 << 20 bytes."""

LANDED = 42
"""What is written there."""

FOLLOWING = ("rows", "twice", "nothing", "one")
"""What a kernel's struct has between the tensors and the scalar: the extent, twice that, a null pointer and 1."""

_LENGTH = SHAPE[0] * SHAPE[1]


@dataclass(frozen=True, slots=True)
class Number:
    """One of the further arguments of a case with scalars of many types."""

    name: str
    """Its name."""

    kind: str
    """A dtype, ``"pointer"`` or ``"struct"``: of eight bytes, two float32."""

    declared: str
    """Its type in the kernel."""

    term: str
    """What the kernel adds of it."""

    value: Any
    """What is passed; None: the address of the first tensor."""

    adds: float
    """What that is as a number; of the address, of what lies there."""

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return 8 if self.kind in ("pointer", "struct") else struct.calcsize(_FORMATS[self.kind])

    @property
    def bits(self) -> int:
        """What is passed, as the lowest bytes of a signed 64-bit integer whose other bytes are 0."""
        value = self.value if isinstance(self.value, bytes) else struct.pack(_FORMATS[self.kind], self.value)
        return int.from_bytes(value.ljust(8, b"\0"), "little", signed=True)


_FORMATS = {
    "int32": "<i",
    "int64": "<q",
    "uint8": "<B",
    "uint64": "<Q",
    "float32": "<f",
    "float64": "<d",
    "bool": "<?",
}

MIXED = (
    Number("whole", "int32", "int", "whole", -3, -3.0),
    Number("offset", "int64", "long long", "offset", 5, 5.0),
    Number("byte", "uint8", "unsigned char", "byte", 200, 200.0),
    Number("seed", "uint64", "unsigned long long", "(seed >> 40)", 9 << 40, 9.0),
    Number("scale", "float32", "float", "scale", 0.5, 0.5),
    Number("epsilon", "float64", "double", "epsilon", 0.25, 0.25),
    Number("causal", "bool", "bool", "causal", True, 1.0),
    Number("address", "pointer", "const float*", "*address", None, 0.0),
    Number("range", "struct", "Range", "(range.low + range.high)", struct.pack("<ff", 1.5, -2.5), -1.0),
)
"""With the int32 that every case has these are ten."""


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """A launch of so many tensors, so many of them through a tensor map, and one int32 scalar.

    The kernel ends at once if the scalar is 0, which is what is timed. Otherwise the last tensor becomes the sum of
    the others and the scalar, which is what is checked.
    """

    tensors: int
    """Tensors, the one that is written included."""

    maps: int = 0
    """How many of them, from the first on, reach the kernel as tensor maps in place of pointers."""

    mixed: bool = False
    """Whether the numbers of `MIXED` are passed too, between the tensors and the scalar."""

    launches: int = 1
    """How often the program launches the kernel, with the same arguments."""

    packed: bool = False
    """Whether the kernel receives all of it, and four values that follow, in one struct that the launcher builds."""

    @property
    def label(self) -> str:
        """The case for people."""
        about = [f"{self.maps} map{'s' * (self.maps > 1)}"] * bool(self.maps)
        about += [f"{len(MIXED) + 1} scalars"] * self.mixed + [f"{self.launches} launches"] * (
            self.launches > 1
        )
        about += [f"struct of {self.tensors + len(FOLLOWING) + 1}"] * self.packed
        return f"{self.tensors} ({', '.join(about)})" if about else f"{self.tensors}"

    @property
    def plain(self) -> bool:
        """Whether it is one launch with one scalar, each argument a parameter."""
        return not self.mixed and self.launches == 1 and not self.packed

    @property
    def numbers(self) -> tuple[Number, ...]:
        """What is passed between the tensors and the scalar."""
        return MIXED if self.mixed else ()

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Offset and size of each field of the kernel's struct, in bytes."""
        sizes = [*(128 if index < self.maps else 8 for index in range(self.tensors)), 8, 8, 8, 4, 4]
        return tuple((sum(sizes[:index]), size) for index, size in enumerate(sizes))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of every tensor."""
        return SHAPE if self.maps else (_LENGTH,)

    @property
    def grid(self) -> int:
        """Blocks: enough for every element, or one that copies whole boxes."""
        return 1 if self.maps or not self.tensors else _LENGTH // THREADS

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each tensor."""
        return tuple(f"t{index}" for index in range(self.tensors))

    def source(self) -> str:
        """Return the kernel as CUDA C++ that includes nothing."""
        if not self.tensors:
            return _NO_TENSORS
        return _with_maps(self) if self.maps else _with_pointers(self)

    def program(self, *, allocating: bool) -> KernelProgram:
        """Return the program.

        Parameters
        ----------
        allocating
            Whether the last tensor is an output that the launcher allocates; otherwise the caller passes it.
        """
        p = ProgramBuilder(
            f"receive_{self.tensors}_{self.maps}_{int(self.mixed)}_{self.launches}_{int(self.packed)}",
            DeviceCode("cuda", self.source()),
        )
        if not self.tensors:
            p.launch(KERNEL, args=(p.scalar("word", "int32"),), grid=1, block=THREADS)
            return p.build()
        rows, columns = Symbol("rows", max=65535), Symbol("columns", max=2**31 - 1, multiple_of=4)
        shape, grid = ((rows, columns), ceildiv(rows, 16)) if self.maps else ((rows,), ceildiv(rows, THREADS))
        aligned = {"alignment": 16} if self.maps else {}
        tensors = [p.input(name, "float32", shape, **aligned) for name in self.names[:-1]]
        if allocating:
            tensors.append(p.output(self.names[-1], "float32", shape, **aligned))
        else:
            tensors.append(p.input(self.names[-1], "float32", shape, access="write", **aligned))
        mapped = [t.tiled(box_dim=SHAPE, l2_promotion="L2_128B") for t in tensors[: self.maps]]
        numbers = [_parameter(p, number) for number in self.numbers]
        args = (*mapped, *tensors[self.maps :], *numbers, p.scalar("word", "int32"))
        if self.packed:
            following = (rows, 2 * rows, const(None), const(1.0, "float32"))
            fields = (*args[:-1], *following, args[-1])
            args = (trunnion.struct(*zip((*self.names, *FOLLOWING, "word"), fields, strict=True)),)
        for _ in range(self.launches):
            p.launch(KERNEL, args=args, grid=grid, block=THREADS)
        return p.build()


def _parameter(p: ProgramBuilder, number: Number) -> Any:
    if number.kind == "pointer":
        return p.pointer(number.name)
    if number.kind == "struct":
        return p.struct(number.name, len(number.value), alignment=4)
    return p.scalar(number.name, number.kind)


CASES = (
    *(Case(count) for count in (0, 1, 3, 9, 19)),
    *(Case(3, maps) for maps in (1, 3)),
    Case(5, mixed=True),
    Case(3, launches=8),
    Case(3, packed=True),
    Case(3, 3, packed=True),
)
"""What is measured."""

BUDGETED = (Case(3), Case(3, 3), Case(3, packed=True), Case(3, 3, packed=True))
"""What there are budgets over the raw loop for, and what is drawn."""

BESIDE_OTHERS = (Case(3), Case(9), Case(19), Case(5, mixed=True))
"""Where the ordinary call of a compiled launcher takes no longer than launchers of others that check nothing."""


_NO_TENSORS = f"""
extern "C" __global__ void {KERNEL}(int word) {{
  if (word == 0 || threadIdx.x != 0) return;
  *reinterpret_cast<int*>(static_cast<unsigned long long>(word) << {MEBIBYTE_SHIFT}) = {LANDED};
}}
""".lstrip()

_EVERYTHING = (
    "struct Everything {{ {tensors}; long long rows, twice; const void* nothing; float one; int word; }};"
)
_WORD = "all.twice == 2 * all.rows && all.nothing == nullptr && all.one == 1.0f ? all.word : 0"


def _received(case: Case, parameters: list[str]) -> dict[str, str]:
    """Return the kernel's name and parameters, and where these are one struct its type and how it is read."""
    if not case.packed:
        return {"kernel": KERNEL, "parameters": ", ".join(parameters), "everything": "", "unpacked": ""}
    kinds = {name: "TensorMap" if index < case.maps else "float*" for index, name in enumerate(case.names)}
    read = [
        f"{kind} {'const& ' if kind == 'TensorMap' else ''}{name} = all.{name};"
        for name, kind in kinds.items()
    ]
    return {
        "kernel": KERNEL,
        "parameters": "const __grid_constant__ Everything all",
        "everything": _EVERYTHING.format(tensors="; ".join(f"{kind} {name}" for name, kind in kinds.items())),
        "unpacked": f"{' '.join(read)} const int word = {_WORD};",
    }


_POINTERS = """
struct Range {{ float low, high; }};
{everything}
extern "C" __global__ void {kernel}({parameters}) {{
  {unpacked}
  if (word == 0) return;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  {last}[i] = {terms};
}}
"""


def _with_pointers(case: Case) -> str:
    *inputs, last = case.names
    numbers = (f"{number.declared} {number.name}" for number in case.numbers)
    tensors = (f"const float* {name}" for name in inputs)
    parameters = [*tensors, f"float* {last}", *numbers, "int word"]
    terms = " + ".join(
        [*(f"{name}[i]" for name in inputs), *(number.term for number in case.numbers), "word"]
    )
    return _POINTERS.format(**_received(case, parameters), last=last, terms=terms).lstrip()


_MAPS = """
struct alignas(64) TensorMap {{ unsigned char opaque[128]; }};
__device__ __forceinline__ unsigned shared_address(const void* pointer) {{
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}}
__device__ __forceinline__ void load_box(const TensorMap& map, float* to, unsigned barrier) {{
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
               "[%0], [%1, {{%2, %2}}], [%3];"
               ::"r"(shared_address(to)), "l"(&map), "r"(0), "r"(barrier) : "memory");
}}
__device__ __forceinline__ void store_box(const TensorMap& map, const float* from) {{
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {{%1, %1}}], [%2];"
               ::"l"(&map), "r"(0), "r"(shared_address(from)) : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}}
{everything}
extern "C" __global__ void {kernel}({parameters}) {{
  {unpacked}
  if (word == 0) return;
  __shared__ alignas(128) float tile[{tiles}][{length}];
  __shared__ alignas(8) unsigned long long landed;
  const unsigned barrier = shared_address(&landed);
  if (threadIdx.x == 0) {{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], {nbytes};" ::"r"(barrier) : "memory");
    {loads}
  }}
  __syncthreads();
  unsigned done = 0;
  while (done == 0) {{
    asm volatile("{{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }}"
                 : "=r"(done) : "r"(barrier) : "memory");
  }}
  for (int i = threadIdx.x; i < {length}; i += blockDim.x) {target}[i] = {terms};
  {store}
}}
"""

_STORE = """asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) store_box({last}, tile[{index}]);"""


def _with_maps(case: Case) -> str:
    *inputs, last = case.names
    loaded = inputs[: case.maps]
    last_mapped = case.maps == case.tensors
    parameters = [
        f"const __grid_constant__ TensorMap {name}" if index < case.maps else f"float* {name}"
        for index, name in enumerate(case.names)
    ]
    reads = [f"tile[{index}][i]" if name in loaded else f"{name}[i]" for index, name in enumerate(inputs)]
    return _MAPS.format(
        **_received(case, [*parameters, "int word"]),
        tiles=case.maps,
        length=_LENGTH,
        nbytes=4 * _LENGTH * len(loaded),
        loads=" ".join(f"load_box({name}, tile[{index}], barrier);" for index, name in enumerate(loaded)),
        terms=" + ".join([*reads, "word"]),
        target=f"tile[{len(inputs)}]" if last_mapped else last,
        store=_STORE.format(last=last, index=len(inputs)) if last_mapped else "",
    ).lstrip()
