import copy
import gc
import pickle

import pytest
import torch

from trunnion.errors import ArgumentTypeError, ArgumentValueError, UnsupportedFeatureError
from trunnion.sim.tensor import SimTensor


@pytest.fixture(autouse=True)
def mode(simulator):
    with simulator.torch_mode():
        yield


def where(value):
    assert isinstance(value, SimTensor)
    assert value.is_cuda
    assert not value.is_cpu
    assert value.get_device() == value.device.index
    return str(value.device)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(2, 3, device="cuda:1"),
        lambda: torch.empty(2, 3, device=torch.device("cuda", 1)),
        lambda: torch.randn(2, 3, device="cuda:1"),
        lambda: torch.arange(6, device="cuda:1"),
        lambda: torch.tensor([1, 2], device="cuda:1"),
        lambda: torch.full((2,), 3.0, device="cuda:1", dtype=torch.float16),
        lambda: torch.ones(2).to("cuda:1"),
        lambda: torch.ones(2).to(device="cuda:1", dtype=torch.float64),
        lambda: torch.ones(2).cuda(1),
        lambda: torch.ones(2).to(torch.ones(2, device="cuda:1")),
        lambda: torch.ones(2).to(tensor=torch.ones(2, device="cuda:1")),
        lambda: torch.ones(2).to("cuda:1", None, False),
        lambda: torch.ones(2).to("cuda:1", torch.float16, False, True),
        lambda: torch.ones(2, device="cuda:0").to("cuda:1", None, False),
        lambda: torch.ones(2).type_as(torch.ones(2, device="cuda:1")),
        lambda: torch.ones(2).type_as(other=torch.ones(2, device="cuda:1")),
        lambda: torch.ones(2, device="cuda:0").to("cuda:1"),
    ],
)
def test_factories_and_moves(make, simulator):
    made = make()
    assert where(made) == "cuda:1"
    assert simulator.memory.find(made.data_ptr()).device == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t[1:],
        lambda t: t.T,
        lambda t: t + 1,
        lambda t: 1 - t,
        lambda t: t @ t.T,
        lambda t: t.sum(),
        lambda t: t.half(),
        lambda t: t.reshape(-1),
        lambda t: t.T.contiguous(),
        lambda t: t.expand(2, 4, 3),
        torch.empty_like,
        lambda t: t.new_zeros(3),
        lambda t: torch.stack([t, t]),
        lambda t: t.max(0).indices,
        lambda t: t.split(2)[1],
        lambda t: t.add_(1),
        lambda t: t.to(torch.bfloat16),
        lambda t: t.view(torch.int32),
        lambda t: t + torch.tensor(1.0),
        lambda t: t[torch.tensor([0, 1])],
        copy.deepcopy,
        lambda t: t.detach().clone(),
    ],
)
def test_what_comes_from_a_tensor_stays_on_its_device(use, simulator):
    host = torch.arange(12.0).reshape(4, 3)
    result = use(host.to("cuda:1"))
    assert where(result) == "cuda:1"
    assert simulator.memory.find(result.data_ptr()).device == 1
    expected = use(host.clone())
    assert result.stride() == expected.stride()
    if use is not torch.empty_like:
        assert torch.equal(result.cpu(), expected)


def test_a_move_takes_the_type_and_copies_only_where_it_must():
    tensor = torch.arange(3.0, device="cuda:1")
    assert tensor.to("cuda:1", None, False) is tensor
    assert tensor.type_as(tensor) is tensor
    assert tensor.to("cuda:1", None, False, True).data_ptr() != tensor.data_ptr()
    for moved, device in (
        (tensor.to("cpu", torch.int32, True), "cpu"),
        (tensor.type_as(torch.ones(1, dtype=torch.int32)), "cpu"),
        (torch.arange(3.0).to("cuda:0", torch.int32, False), "cuda:0"),
        (torch.arange(3.0).type_as(tensor.to("cuda:0", torch.int32)), "cuda:0"),
    ):
        assert (str(moved.device), moved.dtype, moved.tolist()) == (device, torch.int32, [0, 1, 2])


@pytest.mark.parametrize("move", [lambda module: module.to("cuda:1"), lambda module: module.cuda(1)])
def test_a_module_moves_with_its_parameters_and_buffers(move):
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)).requires_grad_(False).eval()
    x = torch.randn(4, 3)
    wanted = module(x)
    for start in (module, copy.deepcopy(module).to("cuda:0")):
        moved = move(start)
        held = [*moved.parameters(), *moved.buffers()]
        assert {where(one) for one in held} == {"cuda:1"}
        assert isinstance(moved[0].weight, torch.nn.Parameter)
        torch.testing.assert_close(moved(x.to("cuda:1")).cpu(), wanted)
    assert moved.half()[0].weight.dtype == torch.float16
    assert type(moved.float().cpu()[0].weight) is torch.nn.Parameter
    assert moved(x).shape == wanted.shape


def test_views_share_memory_and_copies_do_not():
    tensor = torch.zeros(4, device="cuda")
    tensor[1:3] = torch.ones(2)
    assert tensor.cpu().tolist() == [0, 1, 1, 0]
    tensor.host()[0] = 7
    assert tensor.tolist() == [7, 1, 1, 0]
    assert tensor.data_ptr() == tensor.host().data_ptr()
    for copied in (tensor.cpu(), tensor.to("cpu"), tensor.to(device="cpu"), torch.zeros(4).copy_(tensor)):
        assert type(copied) is torch.Tensor
        assert copied.tolist() == [7, 1, 1, 0]
        copied.zero_()
    assert tensor.tolist() == [7, 1, 1, 0]
    assert tensor.to("cuda:0") is tensor
    assert type(torch.zeros_like(tensor, device="cpu")) is torch.Tensor


@pytest.mark.parametrize(
    "mix",
    [
        lambda a, b, h: a + b,
        lambda a, b, h: a + h,
        lambda a, b, h: h + a,
        lambda a, b, h: torch.stack([a, b]),
        lambda a, b, h: torch.equal(a, b),
        lambda a, b, h: torch.add(a, a, out=b),
    ],
)
def test_devices_do_not_mix(mix):
    with pytest.raises(ArgumentValueError, match="one device"):
        mix(torch.ones(3, device="cuda:0"), torch.ones(3, device="cuda:1"), torch.ones(3))


def test_copies_between_devices():
    tensor = torch.zeros(3, device="cuda:0")
    tensor.copy_(torch.ones(3, device="cuda:1"))
    assert (where(tensor), tensor.tolist()) == ("cuda:0", [1, 1, 1])


def test_comparison_and_text():
    tensor = torch.tensor([1.0, 2.0], device="cuda:1")
    assert torch.equal(tensor, tensor.clone())
    torch.testing.assert_close(tensor, tensor + 1e-9)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(tensor, tensor + 1)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(tensor, tensor.cpu())
    assert repr(tensor) == "tensor([1., 2.], device='cuda:1')"


def test_fresh_memory_is_no_zeros():
    for made in (torch.empty(8, device="cuda"), torch.empty_like(torch.zeros(8, device="cuda"))):
        assert made.isnan().all()


def test_nothing_to_hold():
    empty = torch.empty(0, 3, device="cuda:1")
    assert (where(empty), empty.data_ptr(), tuple(empty.shape)) == ("cuda:1", 0, (0, 3))
    assert tuple((empty + 1).shape) == (0, 3)


def test_memory_goes_with_the_last_tensor(simulator):
    gc.collect()
    before = len(simulator.memory.allocations())
    tensor = torch.ones(5, device="cuda")
    view = tensor[1:]
    del tensor
    gc.collect()
    assert len(simulator.memory.allocations()) == before + 1
    del view
    gc.collect()
    assert len(simulator.memory.allocations()) == before


def test_what_a_cuda_tensor_refuses():
    tensor = torch.ones(3, device="cuda")
    with pytest.raises(TypeError, match="cpu"):
        tensor.numpy()
    with pytest.raises(TypeError):
        pickle.dumps(tensor)
    with pytest.raises(BufferError):
        tensor.__dlpack__()
    assert tensor.numpy(force=True).tolist() == [1, 1, 1]
    assert tensor.__dlpack_device__() == (2, 0)


def test_no_such_device():
    for make in (lambda: torch.ones(1, device="cuda:9"), lambda: torch.ones(1).to("cuda:9")):
        with pytest.raises(ArgumentValueError):
            make()


@pytest.mark.parametrize(
    "make",
    [
        lambda _: torch.ones(1, device="cuda", requires_grad=True),
        lambda x: x.requires_grad_(),
        lambda x: x.requires_grad_(True),
        lambda x: x.requires_grad_(requires_grad=True),
        lambda x: setattr(x, "requires_grad", True),
        torch.nn.Parameter,
    ],
)
def test_no_autograd(make):
    x = torch.ones(1, device="cuda")
    with pytest.raises(UnsupportedFeatureError, match="detach"):
        make(x)
    assert not x.requires_grad


def test_what_does_without_autograd_may_say_so():
    x = torch.ones(1, device="cuda")
    x.requires_grad = False
    assert x.requires_grad_(requires_grad=False) is x
    assert where(torch.nn.Parameter(x, requires_grad=False).data) == "cuda:0"


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize(
    "dtype", [torch.float8_e4m3fn, torch.float4_e2m1fn_x2, torch.complex32, torch.bool, torch.uint64]
)
def test_every_type_moves_there_and_back(dtype):
    host = (torch.arange(64, dtype=torch.uint8) % 2).view(dtype)
    back = host.to("cuda").cpu()
    assert back.dtype == dtype
    assert torch.equal(back.view(torch.uint8), host.view(torch.uint8))


def test_cuda_without_a_number_is_the_current_contexts_device(simulator, library):
    assert where(torch.ones(1, device="cuda")) == "cuda:0"
    library.context(1)
    assert where(torch.ones(1, device="cuda")) == "cuda:1"


@pytest.mark.parametrize("host", [3, None, [1.0], "text"])
def test_only_a_tensor_can_be_placed(simulator, host):
    with pytest.raises(ArgumentTypeError, match=r"argument 'host': got .*, expected a torch\.Tensor"):
        simulator.tensor(host)


@pytest.mark.parametrize(
    ("use", "noted"),
    [
        (lambda t: t.ne(t).any(), 2),
        (lambda t: t.add_(1), 1),
        (lambda t: t.__setitem__(0, 1), 1),
        (lambda t: t.sum().item(), 2),
        (lambda t: f"{t}", 1),
        (repr, 1),
        (lambda t: t.tolist(), 1),
        (lambda t: t.cpu(), 1),
        (lambda t: t.T.contiguous(), 1),
        (lambda t: t.T, 0),
        (lambda t: t.contiguous(), 0),
        (lambda t: t[1:].view(-1).detach(), 0),
        (lambda t: t.new_empty(3), 0),
        (lambda t: (t.shape, t.device, t.requires_grad, t.is_sparse, t.nbytes, len(t), t.data_ptr()), 0),
        (lambda t: t.to("cuda:1"), 0),
        (lambda t: t[:0].view(-1), 0),
    ],
)
def test_what_reads_or_writes_elements_is_noted(use, noted, simulator):
    tensor = torch.ones(4, 3, device="cuda:1")
    simulator.clear_trace()
    use(tensor)
    operations = simulator.state.operations
    assert (len(operations) >= noted) if noted else not operations, operations
    assert not simulator.trace
    simulator.clear_trace()
    assert not operations
