"""What NVRTC can make of a source: one closed table."""

from __future__ import annotations

from dataclasses import dataclass

from trunnion.errors import ProgramError

__all__ = ["OUTPUTS", "CompiledOutput", "Output", "output_named"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One kind of output."""

    kind: str
    """The word for it here, as in `DeviceImage.kind`."""

    call: str
    """``nvrtcGet<call>Size`` and ``nvrtcGet<call>`` fetch it."""

    option: str
    """The option without which there is none; empty: none is needed."""

    virtual: bool
    """Whether a virtual architecture such as ``compute_90a`` will do."""

    empty_bytes: int
    """How many bytes NVRTC reports where there is none; it calls that a success."""

    summary: str
    """What it is for."""


OUTPUTS: tuple[Output, ...] = (
    Output(
        kind="cubin",
        call="CUBIN",
        option="",
        virtual=False,
        empty_bytes=0,
        summary="machine code of one real architecture, which the driver loads as it is",
    ),
    Output(
        kind="ptx",
        call="PTX",
        option="",
        virtual=True,
        empty_bytes=1,
        summary="assembler text, which the driver compiles for its device when it loads it",
    ),
    Output(
        kind="ltoir",
        call="LTOIR",
        option="--dlink-time-opt",
        virtual=True,
        empty_bytes=0,
        summary="intermediate code of one part, which nvJitLink optimises together with the others",
    ),
    Output(
        kind="optixir",
        call="OptiXIR",
        option="--optix-ir",
        virtual=True,
        empty_bytes=0,
        summary="intermediate code for OptiX, which only OptiX loads",
    ),
)
"""Every output. With ``--dlink-time-opt`` or ``--optix-ir`` there is that one alone."""


@dataclass(frozen=True, slots=True)
class CompiledOutput:
    """One output of a compiled program."""

    kind: str
    """What it is: the `Output.kind` of a row of `OUTPUTS`."""

    data: bytes
    """Its bytes. PTX ends with a NUL, which C and the driver want."""

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.data)

    @property
    def text(self) -> str:
        """The text, without the NUL at its end; of PTX only.

        Raises
        ------
        ProgramError
            If it is another output, which is no text.
        """
        if self.kind != "ptx":
            raise ProgramError(f"got {self.kind}, which is no text; use data", field="kind")
        return self.data.rstrip(b"\0").decode("utf-8")


def output_named(kind: str) -> Output:
    """Return the row of a kind.

    Raises
    ------
    LookupError
        If there is none of that name.
    """
    for row in OUTPUTS:
        if row.kind == kind:
            return row
    raise LookupError(kind)
