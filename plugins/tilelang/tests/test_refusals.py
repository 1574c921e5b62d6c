"""Refusals: every statement that means what a program cannot say is named, with the function that it stands in."""

from __future__ import annotations

import pickle
from dataclasses import replace
from types import SimpleNamespace

import pytest

from trunnion.errors import ProgramError
from trunnion.model.code import DeviceCode
from trunnion.model.expr import as_expr
from trunnion_tilelang import UnsupportedStatementError, from_artifact
from trunnion_tilelang.artifact import program_of
from trunnion_tilelang.nodes import (
    Alloc,
    Assert,
    Attr,
    Binary,
    Bind,
    Buffer,
    Call,
    Cast,
    Decl,
    DeviceFunction,
    Evaluate,
    Float,
    For,
    HostFunction,
    If,
    Int,
    Module,
    Not,
    Select,
    Seq,
    Str,
    UnknownStmt,
    Var,
)  # fmt: skip
from trunnion_tilelang.prologue import Role
from trunnion_tilelang.walk import Walk

COUNTER = iter(range(100, 10_000))


def var(name, dtype="int32"):
    return Var(next(COUNTER), name, dtype)


SELF, ARGS, COUNT, RESULT = (var(name, "handle") for name in ("self_handle", "args", "num_args", "result"))
HANDLE, NULL, SHAPE, STRIDES, X = (
    var(name, "handle") for name in ("x_handle", "null", "shape", "strides", "x")
)
K, FLAG = var("k"), var("flag", "bool")
CODE = DeviceCode("cuda", "")


def get(base, index, field):
    return Call("tvm_struct_get", (base, Int(index), Int(field)))


def said(text):
    """Return what the statements below have in the place of TVM's objects."""
    return f"# a comment\nn = T.int32()\n{text}"


PROLOGUE = (
    Bind("", HANDLE, get(ARGS, 0, 15)),
    Bind("", K, Cast("int32", get(ARGS, 1, 15))),
    Bind("", FLAG, Cast("bool", get(ARGS, 2, 15))),
    Bind("", SHAPE, get(HANDLE, 0, 2)),
    Bind("", STRIDES, get(HANDLE, 0, 3)),
    Bind("", X, get(HANDLE, 0, 1)),
    Decl("", Buffer("x", X, "float32", (Int(64),), (Int(1),), Int(0), "global")),
)
KERNEL = DeviceFunction(
    "kernel", "kernel", (var("x", "handle"), var("k")), ("blockIdx.x", "threadIdx.x"), frozenset(), False, False
)  # fmt: skip


def call(name, *operands):
    return Evaluate(said(f"T.call_packed({name!r})"), Call("tvm_call_packed", (Str(name), *operands)))


LAUNCH = call("kernel", X, K, Int(1), Int(32))
RETURN = Evaluate("return 0", Call("ret", (Int(0),)))


def program(*statements, kernel=KERNEL, kernels=()):
    body = Seq("", (*PROLOGUE, *statements))
    host = HostFunction("main", (SELF, ARGS, COUNT, RESULT), body, (), callee_allocates=False)
    named = {each.name: each for each in kernels or (kernel,)}
    module = Module(host, named, "", "cuda", "sm_90a")
    return program_of(module, CODE, out_idx=None, name="main")


def refused(*statements, **fields):
    with pytest.raises(UnsupportedStatementError) as caught:
        program(*statements, **fields)
    assert caught.value.function == "main"
    return caught.value


def test_what_the_others_are_made_of_is_a_program():
    found = program(LAUNCH, RETURN)
    assert [param.name for param in found.signature.params] == ["x", "k", "flag"]
    assert len(found.launches) == 1


def test_the_error_names_the_statement_without_declarations_and_survives_a_pickle():
    error = refused(UnknownStmt(said("while k < 3:\n    k = k + 1"), "While"), RETURN)
    assert error.statement == "while k < 3:\n    k = k + 1"
    assert "While" in error.reason
    assert error.statement in str(error)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - made on the same line
    assert (again.reason, again.statement, again.function) == (error.reason, error.statement, "main")
    assert isinstance(error, ProgramError)


def condition(op="lt"):
    return Binary(op, K, Int(3), "bool")


DESCRIPTOR = var("desc", "handle")
SLOT = Bind("", DESCRIPTOR, Call("tvm_stack_alloca", (Str("tvm_ffi_any"), Int(16))))
SET, RESET = "__tvm_cuda_stream_set_access_policy_window", "__tvm_cuda_stream_reset_access_policy_window"


@pytest.mark.parametrize(
    ("statements", "named"),
    [
        ((RETURN, LAUNCH), "follows"),
        ((If("if", condition(), RETURN, None),), "early"),
        ((Evaluate("return 1", Call("ret", (Int(1),))),), "0"),
        ((call("somebody_elses", X),), "somebody_elses"),
        ((Evaluate("f()", Call("call_extern", (Str("f"),))),), "call_extern"),
        ((Evaluate("k", K),), "nothing uses"),
        ((Evaluate("f()", Call("tvm_call_packed", (K,))),), "constant"),
        ((Attr("", "pragma_unroll", "", Int(1)),), "pragma_unroll"),
        ((Bind("", var("f", "float32"), Float(1.0, "float32")),), "1"),
        ((Assert("", Binary("lt", Float(1.0, "float32"), Float(2.0, "float32"), "bool"), "no"),), "integer"),
        ((For("", var("i"), Int(0), K, Int(1), "serial", LAUNCH),), "256"),
        ((For("", var("i"), Int(0), Int(257), Int(1), "serial", LAUNCH),), "256"),
        ((For("", var("i"), Int(0), Int(2), Int(1), "parallel", LAUNCH),), "parallel"),
        ((Alloc("", Buffer("s", var("s", "handle"), "float32", (Int(4),), (), Int(0), "shared")),), "shared"),
        ((Alloc("", Buffer("w", var("w", "handle"), "custom[x]32", (Int(4),), (), Int(0), "global")),), "custom"),
        ((SLOT, call("kernel", DESCRIPTOR, K, Int(1), Int(32))), "pointer"),
        ((call("__tvm_tensormap_create_tiled", DESCRIPTOR, Int(6)),), "descriptor"),
        ((call("kernel", X, K, Int(1)),), "3"),
        ((call("kernel", Call("handle_add_byte_offset", (X, Int(4))), K, Int(1), Int(32)),), "pointer"),
        ((call("kernel", X, Float(1.0, "float32"), Int(1), Int(32)),), "integer"),
        ((call("kernel", X, K, Int(1), Int(2048)),), "1024"),
        ((Evaluate("f()", Call("tvm_call_packed", ())),), "constant"),
        ((Evaluate("f()", Call("call_extern", ())),), "call_extern"),
        ((Evaluate("f()", Call("tvm_struct_set", ())),), "tvm_struct_set"),
        ((Bind("b", NULL, get(ARGS, 3, 14)), Bind("b", var("p"), get(NULL, 0, 1))), "tvm_struct_get"),
        ((call(RESET),), "not begun"),
        ((call(SET, X, Int(256), Float(0.5, "float32")),) * 2, "another lasts"),
        ((If("if", condition(), call(SET, X, Int(256), Float(0.5, "float32")), None),), "condition"),
        ((call(SET, Call("handle_add_byte_offset", (X, Int(4))), Int(8), Float(0.5, "float32")),), "inside"),
        ((call(SET, X, Int(256)),), "operands"),
        ((call(SET, X, Int(256), Float(1.5, "float32")),), "hit_ratio"),
    ],
)  # fmt: skip
def test_it_is_refused_by_name(statements, named):
    assert named in refused(*statements).reason


@pytest.mark.parametrize(("field", "number"), [(4, 2), (10, 1)], ids=["another rank", "another device"])
def test_an_assertion_that_only_looks_like_a_check_of_trunnions_is_refused(field, number):
    assertion = Assert("assert", Binary("eq", get(HANDLE, 0, field), Int(number), "bool"), "no")
    assert refused(assertion).statement == "assert"


def test_a_function_of_more_arguments_than_are_known_is_refused():
    counted = Binary("eq", COUNT, Int(3), "bool")
    assert program(Assert("assert", counted, "three"), LAUNCH, RETURN).launches
    wrong = Binary("eq", COUNT, Int(4), "bool")
    assert "number of arguments" in refused(Assert("assert", wrong, "four"), LAUNCH, RETURN).reason


def test_a_parameter_of_which_nothing_says_the_type_is_refused():
    unread = Bind("", var("unread.type_index"), get(ARGS, 3, 13))
    assert "'unread'" in refused(unread, LAUNCH, RETURN).reason


def test_an_assertion_on_pointers_and_types_at_once_is_refused():
    mixed = Binary("and", Call("isnullptr", (X,)), Binary("eq", get(HANDLE, 0, 9), Int(0), "bool"), "bool")
    assert "trunnion makes" in refused(Assert("assert", mixed, "no")).reason


def test_what_is_bound_under_a_condition_is_not_known_outside_of_it():
    w = var("w", "handle")
    allocated = Alloc("", Buffer("w", w, "float32", (Int(64),), (), Int(0), "global"))
    launch = call("kernel", w, K, Int(1), Int(32))
    assert len(program(If("if", condition(), Seq("", (allocated, launch)), None), RETURN).launches) == 1
    assert "pointer" in refused(If("if", condition(), allocated, None), launch).reason


def test_a_workspace_without_a_name_is_given_one():
    first, second = var("", "handle"), var("", "handle")
    allocated = [
        Alloc("", Buffer("", w, "float32", (Int(64),), (), Int(0), "global")) for w in (first, second)
    ]
    launches = [call("kernel", w, K, Int(1), Int(32)) for w in (first, second)]
    assert [space.name for space in program(*allocated, *launches, RETURN).workspaces] == [
        "unnamed",
        "unnamed_1",
    ]


def test_a_float_that_the_host_computes_is_no_operand():
    kernel = DeviceFunction(
        "kernel", "kernel", (var("a", "float32"),), ("blockIdx.x",), frozenset(), False, False
    )
    assert "float32" in refused(call("kernel", K, Int(1)), kernel=kernel).reason


def test_a_launch_operand_that_is_not_known_is_refused():
    kernel = DeviceFunction("kernel", "kernel", (), ("blockIdx.w",), frozenset(), False, False)
    assert "blockIdx.w" in refused(call("kernel", Int(1)), kernel=kernel).reason


def test_a_cluster_that_only_a_call_gives_is_an_expression():
    operands = ("tir.cluster_dim_x", "blockIdx.x", "threadIdx.x")
    kernel = DeviceFunction("kernel", "kernel", (), operands, frozenset(), False, False)
    (launch,) = program(call("kernel", K, Int(16), Int(32)), RETURN, kernel=kernel).launches
    assert [str(extent) for extent in launch.cluster] == ["k", "1", "1"]


@pytest.mark.parametrize(
    ("start", "extent", "step", "values"),
    [(1, 6, 2, [1, 3, 5]), (0, 5, 4, [0, 4]), (3, 0, 2, []), (0, 3, 1, [0, 1, 2])],
)
def test_a_loop_ends_where_its_extent_does_whatever_its_step(start, extent, step, values):
    turn = var("i")
    loop = For(
        "", turn, Int(start), Int(extent), Int(step), "serial", call("kernel", X, turn, Int(7), Int(32))
    )
    found = program(loop, LAUNCH, RETURN).launches[:-1]
    assert [launch.args[1] for launch in found] == [as_expr(value).cast("int32") for value in values]


def test_loops_in_loops_have_an_end_too(monkeypatch):
    """Each within what one may have: of three, the import took hours and all memory."""
    monkeypatch.setattr("trunnion_tilelang.walk.MOST_MEMBERS", 20)
    inner = For("", var("j"), Int(0), Int(4), Int(1), "serial", LAUNCH)
    assert len(program(For("", var("i"), Int(0), Int(4), Int(1), "serial", inner), RETURN).launches) == 16
    error = refused(For("", var("i"), Int(0), Int(5), Int(1), "serial", inner), RETURN)
    assert "20 turns of all loops" in error.reason


@pytest.mark.parametrize("step", [Int(0), Int(-1), K])
def test_a_step_that_is_no_positive_constant_is_refused(step):
    assert "step" in refused(For("", var("i"), Int(0), Int(3), step, "serial", LAUNCH), RETURN).reason


@pytest.mark.parametrize("name", ["__tvm_set_device", "ret"])
def test_a_kernel_that_is_called_as_a_function_of_tvm_s_is_launched(name):
    found = program(call(name, X, K, Int(1), Int(32)), LAUNCH, kernels=(replace(KERNEL, name=name), KERNEL))
    assert len(found.launches) == 2


def test_what_is_done_where_outputs_could_be_allocated_is_done():
    status = var("status")
    failed, given_up = Binary("ne", status, Int(0), "bool"), Evaluate("return status", Call("ret", (status,)))
    prologue = SimpleNamespace(
        role=lambda leaf: Role("status") if leaf == status else None, parameters={}, roles={}, loads=[]
    )
    host = SimpleNamespace(name="main")
    walk = Walk(SimpleNamespace(kernels={}, host=host), SimpleNamespace(prologue=prologue, by_index={}))
    walk.visit(If("if", failed, given_up, None))
    with pytest.raises(UnsupportedStatementError, match="somebody_elses"):
        walk.visit(If("if", failed, given_up, call("somebody_elses")))


@pytest.mark.parametrize(
    "asking",
    [
        If("if", NULL, LAUNCH, None),
        For("for", var("i"), Int(0), Select(NULL, Int(1), Int(2)), Int(1), "serial", LAUNCH),
        call("kernel", X, K, Select(NULL, Int(1), Int(2)), Int(32)),
        Bind("bind", var("size"), Select(NULL, Int(1), Int(2))),
    ],
    ids=["If", "For", "operand", "Bind"],
)
def test_nothing_but_a_check_may_ask_whether_a_tensor_is_none(asking):
    """It was taken to be there, and what is done without it was left out of the program."""
    asked = Bind("asked", NULL, Call("isnullptr", (HANDLE,)))
    assert "'null'" in refused(asked, asking, LAUNCH, RETURN).reason


@pytest.mark.parametrize("is_named", [True, False])
def test_an_argument_that_is_asserted_to_be_there_may_not_be_none(is_named):
    """A bare address too: the assertion was left out, and a null pointer reached the kernel."""
    address = var("address", "handle")
    asked = Call("isnullptr", (address,))
    body = (Bind("", address, get(ARGS, 3, 15)), Bind("", NULL, asked))
    found = program(*body, Assert("assert", Not(NULL if is_named else asked), "no"), LAUNCH, RETURN)
    assert [param.name for param in found.signature.params if getattr(param, "nullable", False)] == ["x"]


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ({"kernel_source": None}, "got SimpleNamespace without kernel_source"),
        ({"host_mod": object()}, "host_codegen"),
    ],
)
def test_an_artifact_without_its_ir_is_refused(missing, named):
    """With enable_host_codegen=True, TileLang puts a module there that is built; it was an AttributeError of TVM's."""
    parts = {"host_mod": SimpleNamespace(functions={}), "device_mod": SimpleNamespace(functions={})}
    with pytest.raises(ProgramError, match=named):
        from_artifact(SimpleNamespace(**parts | {"kernel_source": ""} | missing))


def test_an_expression_that_is_too_deep_for_python_is_refused():
    deep = K
    for _ in range(2000):
        deep = Binary("add", deep, Int(1), "int32")
    with pytest.raises(ProgramError, match="nested too deep"):
        program(call("kernel", X, K, deep, Int(32)), RETURN)


def test_so_is_one_that_is_too_deep_to_be_read():
    def of_tvm(kind, **fields):
        return type(kind, (), fields)()

    deep = of_tvm("IntImm", value=1, dtype="int32")
    for _ in range(2000):
        deep = of_tvm("Add", a=deep, b=deep, dtype="int32")
    param = of_tvm("Var", name="p", dtype="handle", __chandle__=lambda _: 1)
    host = SimpleNamespace(params=(param,) * 4, attrs=None, body=of_tvm("Evaluate", value=deep))
    parts = {
        "host_mod": SimpleNamespace(functions={"main": host}),
        "device_mod": SimpleNamespace(functions={}),
    }
    with pytest.raises(ProgramError, match="nested too deep"):
        from_artifact(SimpleNamespace(**parts, kernel_source=""))
