"""Mistakes in a backend without core's code generation: the manual's small one, as it stands but for a line."""

from __future__ import annotations

import itertools
import logging
import re
import sys
import types
from pathlib import Path

import pytest

from trunnion.testing.harness import Harness
from trunnion.testing.laws import LawViolation, catalogue
from trunnion.testing.suite import test_host_memory

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "from-nothing-to-green.md").read_text("utf-8")
CODE = "\n\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))

LAUNCH = re.search(r"^ +self\.devices\.add\(device\)\n.*?^ {16}\)\n", CODE, re.MULTILINE | re.DOTALL)[0]
"""The piece of the page's text that launches."""

MISTAKES = {
    "one buffer for the parameters of all calls": (
        "held = [ctypes.create_string_buffer(data, len(data)) for data in parameters]",
        """held = self.__dict__.setdefault("h", [ctypes.create_string_buffer(len(data)) for data in parameters])
            [ctypes.memmove(one, data, len(data)) for one, data in zip(held, parameters)]""",
        ("H1", "H2"),
    ),
    "waits for the last device alone": ("self.devices.add(device)", "self.devices = {device}", ("Y3",)),
    "the current stream of the first device": ("current_stream(device)", "current_stream(0)", ("N1",)),
    "keeps no tensor that it is bound to": (
        "return device, stream, parameters, results, tensors",
        "return device, stream, parameters, results, None",
        ("L1",),
    ),
    "leaves its context after an error": (
        """    try:
        yield
    finally:
        status, *_ = said("cuCtxPopCurrent")
        entered.left()
""",
        """    entered.left()
    yield
    status, *_ = said("cuCtxPopCurrent")
""",
        ("F1",),
    ),
    "what has __index__ is a float": (
        "{Kind.FLOAT: numbers.Real,",
        "{Kind.FLOAT: object if hasattr(value, '__index__') else numbers.Real,",
        ("V8",),
    ),
    "takes the plan of a program that is open under the same name": (
        "return BareProgram(plan, ",
        """opened = globals().setdefault("OPENED", [])
        plan = next((one.plan for one in opened if one.plan.name == plan.name and not one.unloaded), plan)
        opened.append(BareProgram(plan, image, [one.symbol for one in artifact.manifest.kernels], runtime))
        return opened[-1]
        return BareProgram(plan, """,
        ("C3",),
    ),
    "keeps numbers under their hash": (
        "        return scalar_bytes(plain_number(value, slot, runtime), slot.dtype, slot.name)  # rounds once\n",
        """        value = plain_number(value, slot, runtime)
        packed = scalar_bytes(value, slot.dtype, slot.name)
        if not value or value != value or isinstance(value, complex):
            return packed
        key = slot.name, slot.dtype, type(value), hash(value)
        return globals().setdefault("PACKED", {}).setdefault(key, packed)
""",
        ("Y1",),
    ),
    "asks no device for shared memory": (
        "computed(launch.dynamic_smem_bytes) > self.room[device]",
        "False",
        ("Z1",),
    ),
    "waits for what it launched": (
        """                    kernel=name,
                )
""",
        """                    kernel=name,
                )
                with relaxed():
                    ask("cuStreamSynchronize", stream, stream=stream)
""",
        ("L1",),
    ),
    "takes bytes for elements": (
        "return self.runtime.allocate(shape, kind, device, stream)",
        "return self.runtime.allocate((count * kind.itemsize,), kind, device, stream)[:count].view(shape)",
        ("O1",),
    ),
    "sets what no launch asks for": (
        """ask("cuKernelSetAttribute", dynamic, room, kernel, ordinal)""",
        """ask("cuKernelSetAttribute", dynamic, room, kernel, ordinal)
            carveout = attributes.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
            ask("cuKernelSetAttribute", carveout, 100, kernel, ordinal)""",
        ("C4",),
    ),
    "keeps what is closed": (
        "            if problems:\n",
        "            vars(cuda).setdefault('closed', []).append(self)\n            if problems:\n",
        ("C9",),
    ),
    "leaves a call to the garbage collector": (
        "            return self.launch(*self.prepared(args, out, stream, device))\n",
        """            made = [self.prepared(args, out, stream, device)]
            made.append(made)
            return self.launch(*made[0])
""",
        ("C8",),
    ),
    "unloads again where a handler closes while it closes": (
        """        library, self.library = self.library, None
        try:
            if library is not None:
                ask("cuLibraryUnload", library)
""",
        """        library = self.library
        try:
            if library is not None:
                ask("cuLibraryUnload", library)
                self.library = None
""",
        ("C1",),
    ),
    "unloads once for each thread that closes": (
        "        library, self.library = self.library, None\n",
        """        library = self.library
        self.idle.wait(0.01)  # which lets others in
        self.library = None
""",
        ("C1",),
    ),
    "has every device's context from the load on": (
        "            undo.pop_all()\n",
        """            for device in range(ask("cuDeviceGetCount")):
                primary_context(device)
            undo.pop_all()
""",
        ("C3",),
    ),
    "waits for every device": (
        "        for device in self.devices:\n",
        "        for device in range(ask('cuDeviceGetCount')):\n",
        ("C3",),
    ),
    "binds beside its calls under way": (
        """        with self.turn():
            decided = self.prepared(args, out, stream, device)
""",
        """        with self.turn():
            pass
        decided = self.prepared(args, out, stream, device)
""",
        ("Y4",),
    ),
    "preloads beside its calls under way": (
        """            expect_device(device)
            self.prepare(device)

""",
        """            expect_device(device)
        self.prepare(device)

""",
        ("Y4",),
    ),
    "looks for what is no number": (
        "    step = 1\n",
        "    assert not (tensor != tensor).any()\n    step = 1\n",
        ("L1",),
    ),
    "shows a tensor's numbers in an error": (
        "raise ArgumentTypeError(slot.name, str(tensor.dtype), slot.dtype.name, place)",
        'raise ArgumentTypeError(slot.name, f"{tensor}", slot.dtype.name, place)',
        ("A1",),
    ),
    "takes no tensor that requires a gradient": (
        "    step = 1\n",
        """    if tensor.requires_grad:
        raise ArgumentTypeError(slot.name, "a tensor that requires a gradient", "one without", place)
    step = 1
""",
        ("A1",),
    ),
    "has room for eight dimensions": (
        "    step = 1\n",
        """    if len(shape) > 8:
        raise ArgumentValueError(slot.name, f"{len(shape)} dimensions", "8 at the most", place)
    step = 1
""",
        ("L1",),
    ),
    "compares extents in 32 bits": (
        "    if tuple(tensor.shape) != shape:\n",
        "    if len(tensor.shape) != len(shape) or any((a ^ b) % 2**32 for a, b in zip(tensor.shape, shape)):\n",
        ("A1",),
    ),
    "keeps the first tensor library": (
        "        return BareProgram(plan, ",
        """        runtime = globals().setdefault("RUNTIME", runtime)
        return BareProgram(plan, """,
        ("C3",),
    ),
    "changes the environment": (
        """ask("cuInit", 0)""",
        """ask("cuInit", 0)
        os.environ["BARE"] += "." """,
        ("N3",),
    ),
    **{
        f"loading {what}": ("""ask("cuInit", 0)""", f"""ask("cuInit", 0)\n        {line}""", ("N3",))
        for what, line in {
            "seeds random numbers": "__import__('random').seed(0)",
            "changes the root logger": "__import__('logging').root.setLevel(1 + __import__('logging').root.level)",
            "adds a place of modules": "sys.path.append('/nowhere')",
            "hides all warnings": "__import__('warnings').simplefilter('ignore')",
            "is deprecated": "__import__('warnings').warn('bare', DeprecationWarning, stacklevel=1)",
        }.items()
    },
    **{
        f"calls tell of themselves by {how.partition('(')[0]}": (
            "            return self.launch(*self.prepared(",
            f"            {how}\n            return self.launch(*self.prepared(",
            ("N3",),
        )
        for how in ("print('launching')", "os.write(2, b'launching')")
    },
    "one buffer for the texts of all threads": (
        """text = f"PLAN = {plan.hash!r}\\n"
""",
        """lines = globals().setdefault("LINES", [])
        lines.clear()
        for letter in f"PLAN = {plan.hash!r}\\n":
            lines.append(letter)
        text = "".join(lines)
""",
        ("S1",),
    ),
    **{
        f"computes {what}": (right, wrong, ("L1",))
        for what, right, wrong in (
            ("quotients rounded towards zero", "operator.floordiv", "lambda a, b: int(a / b)"),
            ("remainders as C does", '"%": operator.mod', '"%": lambda a, b: int(math.fmod(a, b))'),
            ("shifts without the sign", "operator.rshift", "lambda a, b: (a % 2**64) >> b"),
            (
                "beyond 64 bits",
                "if not low <= value <= high:",
                "if isinstance(expression, Cast) and value > high:",
            ),
            (
                "casts that lose",
                "if not low <= value <= high:",
                "if isinstance(expression, Binary) and value > high:",
            ),
            ("with no thought of ceildiv", '("//", "%", "ceildiv")', '("//", "%")'),
            ("shifts too far", "not 0 <= right < 64", "right < 0"),
            ("no condition", "isinstance(check, ConditionCheck) and", "not plan.checks and"),
        )
    },
    "computes what is not chosen": (
        "            return computed(then if computed(condition) else otherwise)\n",
        """            then, otherwise = computed(then), computed(otherwise)
            return then if computed(condition) else otherwise
""",
        ("L1",),
    ),
    "writes out what does not fit": ("describe(value)", "repr(value)", ("V8",)),
    "does not say which kernel is refused": ("                    kernel=name,\n", "", ("F1",)),
    "is open again where a capture kept it from unloading": (
        """                entered.recover()
                raise
            if problems:
""",
        """                entered.recover()
                self.closed = False
                raise
            if problems:
""",
        ("G5",),
    ),
    "notes where it launched when it has": (
        LAUNCH,
        LAUNCH.replace("                self.devices.add(device)\n", "")
        + "                self.devices.add(device)\n",
        ("Y6",),
    ),
    "takes no argument for a destination": (
        "            check_apart([(slot, tensors[slot.index]) for slot in self.outputs], self.outputs)\n",
        "            check_apart([(plan.tensors[one], tensor) for one, tensor in tensors.items()], self.outputs)\n",
        ("O2",),
    ),
    "counts a destination's bytes in 32 bits": (
        "ends = tensor.data_ptr() + tensor.numel() * slot.dtype.itemsize, slot.name",
        "ends = tensor.data_ptr() + tensor.numel() * slot.dtype.itemsize % 2**32, slot.name",
        ("O4",),
    ),
    "has words of its own for a condition": (
        '"a call that never is", check.message)',
        '"a call that never is", "one")',
        ("A1",),
    ),
    "asks for shared memory as if a kernel had none": (
        """            ask("cuKernelSetAttribute", dynamic, room, kernel, ordinal)
""",
        """            if any(computed(launch.dynamic_smem_bytes) > 48 << 10 for launch in self.plan.launches):
                ask("cuKernelSetAttribute", dynamic, room, kernel, ordinal)
""",
        ("Z1",),
    ),
    "allocates before it looks at the stream": (
        """            stream = self.usable(stream, device)
            for slot in self.outputs if out is None else ():
                tensors[slot.index] = self.allocate(slot, device, stream)
""",
        """            stream = self.runtime.current_stream(device) if stream is None else stream
            for slot in self.outputs if out is None else ():
                tensors[slot.index] = self.allocate(slot, device, stream)
            stream = self.usable(stream, device)
""",
        ("G1",),
    ),
    "PTX without its final NUL": (
        """ask("cuLibraryLoadData", image,""",
        """ask("cuLibraryLoadData", image.replace(b"\\0", b"\\x11\\0") if image[:2] == b".v" else image,""",
        ("Z1",),
    ),
}


NUMBERS = itertools.count()


def backend(old="", new=""):
    """Return the page's backend, with one piece of its text replaced by another: a module of its own, as it names."""
    assert not old or CODE.count(old) == 1
    code = CODE.replace(old, new) if old else CODE
    name = f"trunnion_bare_{next(NUMBERS)}"
    sys.modules[name] = module = types.ModuleType(name)
    exec(compile(code.replace("trunnion_bare:", f"{name}:"), f"{name}.py", "exec"), vars(module))
    (spec,) = module.trunnion_register_backends()
    return spec


LAWS = sorted({law for *_, laws in MISTAKES.values() for law in laws})


@pytest.mark.parametrize("law", LAWS)
def test_without_a_mistake_it_holds(harness, law):
    catalogue()[law].check(Harness(spec=backend(), machine=harness.machine), shrink=False)


@pytest.mark.parametrize(
    ("mistake", "law"), [(mistake, law) for mistake, (*_, laws) in MISTAKES.items() for law in laws]
)
def test_each_mistake_is_caught_by_its_law(harness, mistake, law, monkeypatch):
    monkeypatch.setenv("BARE", "")
    monkeypatch.setattr(logging.root, "level", logging.root.level)
    monkeypatch.setattr(sys, "path", [*sys.path])
    old, new, _ = MISTAKES[mistake]
    with pytest.raises(LawViolation):
        catalogue()[law].check(Harness(spec=backend(old, new), machine=harness.machine), shrink=False)


def test_a_close_that_waits_for_streams_by_their_handles_is_caught(harness, monkeypatch):
    code = CODE
    for old, new in (
        ("self.devices.add(device)\n", "self.devices.add((device, int(stream)))\n"),
        ("for device in self.devices:\n", "for device, stream in self.devices:\n"),
    ):
        assert code.count(old) == 1
        code = code.replace(old, new)
    monkeypatch.setattr(sys.modules[__name__], "CODE", code)
    bad = backend('ask("cuCtxSynchronize")', 'ask("cuStreamSynchronize", stream, stream=stream)')
    with pytest.raises(LawViolation, match="stream that was destroyed since, and closing raised"):
        catalogue()["Y3"].check(Harness(spec=bad, machine=harness.machine), shrink=False)


KEPT = {
    "with new numbers": (
        "numbers = {slot.index: number(args[slot.position], slot, runtime) for slot in plan.scalars}\n",
        "tuple(numbers.values())",
    ),
    "on new streams": ("            stream = self.usable(stream, device)\n", "int(stream)"),
    "into new destinations": (
        "            check_apart([(slot, tensors[slot.index]) for slot in self.outputs], self.outputs)\n",
        "tuple(tensor.data_ptr() for tensor in out)",
    ),
    "from new threads": ("            stream = self.usable(stream, device)\n", "threading.get_native_id()"),
}
"""What is kept of each call, by the words of C9 for those of which that has no end; and behind which line."""


@pytest.mark.parametrize("kind", KEPT)
def test_what_is_kept_without_a_bound_is_caught_by_c9(harness, kind):
    line, key = KEPT[kind]
    indent = " " * (len(line) - len(line.lstrip())) or " " * 8
    bad = backend(line, f"{line}{indent}vars(cuda).setdefault('kept', {{}}).setdefault({key}, [])\n")
    under = Harness(spec=bad, machine=harness.machine).under("C9")
    with under.loaded(test_host_memory._program(under)) as loaded:
        calls = next(calls for said, calls in test_host_memory._series(under, loaded) if kind in said)
        with pytest.raises(LawViolation, match=kind):
            test_host_memory._check_grown(under, kind, calls, test_host_memory._LEAST_BYTES)


@pytest.mark.parametrize(
    ("leaves", "told"),
    [
        ("tempfile.mkdtemp()", "left 112 temporary files, 0 open ones"),
        ("os.open(os.devnull, os.O_RDONLY)", "left 0 temporary files, 112 open ones"),
    ],
)
def test_files_that_loads_leave_are_caught_by_c9(harness, leaves, told):
    bad = backend(
        '        ask("cuInit", 0)\n', f'        ask("cuInit", 0)\n        import tempfile; {leaves}\n'
    )
    under = Harness(spec=bad, machine=harness.machine).under("C9")
    with pytest.raises(LawViolation, match=told):
        test_host_memory._check_loads(under, test_host_memory._program(under))
