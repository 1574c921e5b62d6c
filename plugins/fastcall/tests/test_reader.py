"""A reader takes tensors like its models, and no others."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from trunnion_fastcall import tensor_reader

LAZY = (torch.Tensor.is_neg, torch.Tensor.is_conj)


def base() -> torch.Tensor:
    return torch.arange(12.0).reshape(3, 4)


class Tensor(torch.Tensor):
    pass


def test_it_reads_the_address_of_every_tensor(reader: Any) -> None:
    tensors = (base(), torch.ones(5, dtype=torch.int32), torch.tensor(1, dtype=torch.bfloat16))
    others = (base(), torch.ones(5, dtype=torch.int32), torch.tensor(2, dtype=torch.bfloat16))
    read = reader(*tensors)
    assert read(*others) == tuple(tensor.data_ptr() for tensor in others)
    assert read(*tensors) == tuple(tensor.data_ptr() for tensor in tensors)
    assert reader()() == ()


def test_it_keeps_no_model(reader: Any) -> None:
    import weakref

    model = base()
    gone = weakref.ref(model)
    read = reader(model)
    del model
    assert gone() is None
    other = base()
    assert read(other) == (other.data_ptr(),)


def test_an_offset_counts(reader: Any) -> None:
    whole = torch.zeros(64)
    assert reader(whole[4:8])(whole[10:14]) == (whole.data_ptr() + 40,)


def test_equal_addresses_are_one_tuple(reader: Any) -> None:
    first, other = base(), base()
    read = reader(first)
    before = read(first)
    assert read(first) is before
    assert read(other) == (other.data_ptr(),)
    assert read(first) == before


def test_a_tensor_may_be_passed_twice(reader: Any) -> None:
    one = base()
    assert reader(one, one)(one, one) == (one.data_ptr(),) * 2


@pytest.mark.parametrize(
    "other",
    [
        base().t(),
        torch.zeros(4, 3),
        torch.zeros(3, 5),
        torch.zeros(12),
        torch.zeros(3, 4, 1),
        torch.zeros(()),
        torch.zeros(64).as_strided((3, 4), (8, 1)),
        torch.zeros(64).as_strided((3, 4), (4, 2)),
        torch.zeros(1).expand(3, 4),
        base().double(),
        base().to(torch.int32),
        base().to(torch.complex64),
        torch.empty(3, 4, device="meta"),
        base().as_subclass(Tensor),
        torch.nn.Parameter(base()),
        base().to_sparse(),
        base().numpy(),
        None,
        3,
        "tensor",
    ],
    ids=str,
)
def test_what_is_not_like_the_model_is_not_read(reader: Any, other: object) -> None:
    read = reader(base(), questions=LAZY)
    assert read(other) is None
    again = base()
    assert read(again) == (again.data_ptr(),)
    assert reader(base(), base())(base(), other) is None


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_a_nested_tensor_is_not_read(reader: Any, layout: Any) -> None:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)
    assert reader(torch.ones(2, 3))(nested) is None


def test_tensors_without_memory_of_their_own_are_not_read(reader: Any) -> None:
    read = reader(torch.zeros(3))
    with FakeTensorMode():
        assert read(torch.zeros(3)) is None
    assert read(torch._efficientzerotensor(3)) is None
    lost = torch.zeros(3)
    lost.untyped_storage().resize_(0)
    assert read(lost) is None
    seen = []
    torch.vmap(lambda one: (seen.append(read(one)), one)[1])(torch.zeros(2, 3))
    torch.func.functionalize(lambda one: (seen.append(read(one)), one)[1])(torch.zeros(3))
    torch.func.grad(lambda one: (seen.append(read(one)), one.sum())[1])(torch.zeros(3))
    assert seen == [None, None, None]


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_what_became_lazy_where_the_last_one_lay_is_not_read(reader: Any, shape: Any) -> None:
    whole = torch.zeros(shape, dtype=torch.complex64)
    read = reader(whole.imag, questions=LAZY[:1])
    assert read(whole.imag) == read(whole.imag) == (whole.imag.data_ptr(),)
    assert read(whole.conj().imag) is None
    read = reader(whole, questions=LAZY)
    assert read(whole) == (whole.data_ptr(),)
    assert read(whole.conj()) is None
    plain = torch.zeros(shape)
    read = reader(plain, questions=LAZY[:1])
    assert read(plain) == (plain.data_ptr(),)
    assert (
        read(torch._neg_view(plain)) is None
    )  # torch negates any tensor by this, its own name for it is private


def test_no_elements_need_no_address(reader: Any) -> None:
    read = reader(torch.empty(0, 4))
    assert read(torch.empty(0, 4)) == (0,)
    assert read(torch.empty(4, 4)[2:2]) is not None
    assert read(torch.empty(4, 0)) is None


def test_strides_of_one_element_are_compared(reader: Any) -> None:
    """A program may hand them on."""
    memory = torch.zeros(64)
    read = reader(memory.as_strided((1, 3), (7, 1)))
    assert read(memory.as_strided((1, 3), (7, 1))) is not None
    assert read(memory.as_strided((1, 3), (8, 1))) is None


@pytest.mark.parametrize("name", ["uint4", "uint1", "int4", "int8", "bool", "float8_e4m3fn"])
def test_element_types_of_one_byte_are_told_apart(reader: Any, name: str) -> None:
    """torch shows some as other ones: to DLPack a ``torch.uint4`` is a byte."""
    memory = torch.zeros(8, dtype=torch.uint8)
    same = memory.view(getattr(torch, name))
    assert reader(memory)(same) is None
    assert reader(same)(memory) is None
    assert reader(same)(same) == (memory.data_ptr(),)


def test_lazy_views_are_found_by_the_questions(reader: Any) -> None:
    real, imaginary = torch.zeros(3), torch.zeros(3, dtype=torch.complex64)
    negative = torch._neg_view(real)
    assert reader(real, questions=LAZY)(negative) is None
    assert reader(imaginary, questions=LAZY)(imaginary.conj()) is None
    assert reader(real)(negative) == (real.data_ptr(),), "or the questions would not matter"
    assert reader(imaginary)(imaginary.conj()) == (imaginary.data_ptr(),)


@pytest.mark.parametrize("answer", [True, None, 0, "", 1])
def test_only_false_itself_lets_pass(reader: Any, answer: object) -> None:
    assert reader(base(), questions=(lambda _: answer,))(base()) is None
    assert reader(base(), questions=(lambda _: False, lambda _: answer))(base()) is None


def test_a_question_is_asked_about_the_tensor_itself(reader: Any) -> None:
    asked: list[object] = []
    tensors = base(), base()
    reader(*tensors, questions=(lambda tensor: bool(asked.append(tensor)),))(*tensors)
    assert [id(tensor) for tensor in asked] == [id(tensor) for tensor in tensors]


@pytest.mark.parametrize("error", [RuntimeError("no"), ValueError("no"), StopIteration()])
def test_an_error_in_a_question_is_an_answer(reader: Any, error: Exception) -> None:
    def ask(_: object) -> bool:
        raise error

    assert reader(base(), questions=(ask,))(base()) is None


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), MemoryError("no")])
def test_an_interrupt_in_a_question_goes_on(reader: Any, error: BaseException) -> None:
    def ask(_: object) -> bool:
        raise error

    with pytest.raises(type(error)):
        reader(base(), questions=(ask,))(base())


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_tensors_is_not_read(reader: Any, count: int) -> None:
    assert reader(base(), base())(*(base() for _ in range(count))) is None


def test_many_tensors(reader: Any) -> None:
    tensors = [torch.zeros(2, dtype=torch.float64) for _ in range(100)]
    read = reader(*tensors)
    assert read(*tensors) == tuple(tensor.data_ptr() for tensor in tensors)
    assert read(*tensors[:-1], tensors[0].float()) is None


def test_a_reader_takes_no_names(reader: Any) -> None:
    with pytest.raises(TypeError, match="read"):
        reader(base())(tensor=base())


def test_threads_may_read_at_once(reader: Any) -> None:
    tensors = [base() for _ in range(8)]
    read = reader(tensors[0], questions=LAZY)
    wrong: list[object] = []

    def work(tensor: torch.Tensor) -> None:
        wrong.extend(found for _ in range(5000) if (found := read(tensor)) != (tensor.data_ptr(),))

    threads = [threading.Thread(target=work, args=(tensor,)) for tensor in tensors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_question_may_read_through_the_same_reader(reader: Any) -> None:
    first, other = base(), base()
    depth = []

    def ask(_: object) -> bool:
        if not depth:
            depth.append(read(other) if depth.append(0) is None else None)
        return False

    read = reader(first, questions=(ask,))
    assert read(first) == (first.data_ptr(),)
    assert depth[1] == (other.data_ptr(),)


# What the factory refuses ------------------------------------------------------------------------------------------


def refused(*arguments: object) -> str:
    with pytest.raises((TypeError, ValueError)) as caught:
        tensor_reader(*arguments)
    return str(caught.value)


def test_bad_arguments_are_named(exchange: int) -> None:
    kind, one = torch.Tensor, (base(),)
    assert "got 3 arguments, expected 4" in refused(exchange, kind, one)
    assert "exchange: got '1', expected an address" in refused("1", kind, one, ((),))
    assert "exchange: got -1, expected an address" in refused(-1, kind, one, ((),))
    assert "exchange: got 0, expected the address of a DLPackExchangeAPI" in refused(0, kind, one, ((),))
    assert "tensor_type: got 'Tensor', expected a class" in refused(exchange, "Tensor", one, ((),))
    assert "tensors: got <class 'list'>, expected a tuple" in refused(exchange, kind, list(one), ((),))
    assert "questions: got <class 'list'>, expected a tuple" in refused(exchange, kind, one, [()])
    assert "questions: got 2, expected 1" in refused(exchange, kind, one, ((), ()))
    assert "questions[0]: got <class 'int'>, expected a tuple" in refused(exchange, kind, one, (3,))
    assert "questions[0][1]: got 3, expected a callable" in refused(exchange, kind, one, ((print, 3),))
    assert "tensors[0]: got <class 'int'>, expected exactly" in refused(exchange, kind, (3,), ((),))
    parameter = torch.nn.Parameter(base())
    assert "Parameter" in refused(exchange, kind, (parameter,), ((),))
    sparse = base().to_sparse()
    assert "tensors[0]: its library does not show its memory" in refused(exchange, kind, (sparse,), ((),))


class Table(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
        ("functions", ctypes.c_void_p * 5),
    )


def test_versions_of_the_exchange_api(exchange: int) -> None:
    true = Table.from_address(exchange)
    one, newer, older = base(), Table(2, 0, exchange), Table(0, 8, exchange)
    read = tensor_reader(ctypes.addressof(newer), torch.Tensor, (one,), ((),))
    assert read(one) == (one.data_ptr(),)
    for table in (Table(2, 0, None), older):
        assert "version 1" in refused(ctypes.addressof(table), torch.Tensor, (one,), ((),))
    blind = Table(true.major, true.minor, None, true.functions)
    blind.functions[3] = None
    message = refused(ctypes.addressof(blind), torch.Tensor, (one,), ((),))
    assert "without dltensor_from_py_object_no_sync" in message


VIEW = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)


def test_a_library_that_fails_without_an_exception(exchange: int) -> None:
    """The format asks for one; a simulated library cannot raise through its callbacks."""
    true = Table.from_address(exchange)
    show = VIEW(true.functions[3])
    failing = [False]
    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(
        lambda tensor, out: -1 if failing[0] else show(tensor, out)
    )
    table = Table(true.major, true.minor, None, true.functions)
    table.functions[3] = ctypes.cast(callback, ctypes.c_void_p).value
    one = base()
    read = tensor_reader(ctypes.addressof(table), torch.Tensor, (one,), ((),))
    assert read(one) == (one.data_ptr(),)
    failing[0] = True
    assert read(one) is None
    assert "does not show" in refused(ctypes.addressof(table), torch.Tensor, (one,), ((),))
