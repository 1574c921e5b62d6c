"""Access-policy windows: their range, the cache that is set aside, and what is left of them."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from trunnion.errors import ArgumentValueError, CaptureError, DeviceRequirementError, DriverError
from trunnion.launcher.facade import WindowSpec
from trunnion.launcher.l2_persisting import SetAsideWarning
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import Symbol, as_expr, symbols
from trunnion.model.program import DeviceCode

CODE = DeviceCode("cuda", "//")
SPEC = WindowSpec(0.5, 2, 1)


def windowed(extent: Any = "n", *, when: bool | None = None, **fields: Any) -> Any:
    """Return a launch with a window over a tensor of some extent, 500 or more elements if that is "large"."""
    p = ProgramBuilder("p", CODE)
    n, b = Symbol("n", min=500 if extent == "large" else 0), Symbol("b")
    x = p.input("x", "float32", (n if isinstance(extent, str) else extent,))
    p.scalar("b", "int64", symbol=b)
    named = {name: b if value == "b" else value for name, value in fields.items()}
    condition = {} if when is None else {"when": as_expr(int(when))}
    p.launch("k", (x,), 1, 32, window=x.window(hit_ratio=0.5, **named), **condition)
    return p.build()


def seen(r: Any, *names: str) -> list[tuple[Any, ...]]:
    return [entry for entry in r.facade.log if entry[0] in names]


def test_a_window_is_the_tensor_or_what_the_device_allows(any_rig: Any, tensor: Any) -> None:
    r = any_rig(windowed())
    x = tensor("float32", 1000)
    r.program.entry(x, 0)
    assert r.facade.launched[-1].window == (x.address, 4000)
    r.facade.attributes[109] = 1024
    r.program.entry(tensor("float32", 999), 0)
    assert r.facade.launched[-1].window[1] == 1024
    r = any_rig(windowed(element_offset=10))
    r.program.entry(x, 0)
    assert r.facade.launched[-1].window == (x.address + 40, 3960)


def test_a_window_that_is_named_lies_within_its_memory_and_the_devices_limit(
    any_rig: Any, tensor: Any
) -> None:
    r = any_rig(windowed(nbytes="b", element_offset=2))
    x = tensor("float32", 1000)
    r.program.entry(x, 3992)
    assert r.facade.launched[-1].window == (x.address + 8, 3992)
    with pytest.raises(ArgumentValueError) as caught:
        r.program.entry(x, 3993)
    assert caught.value.argument == "x"
    small = any_rig(windowed(nbytes="b", element_offset=2))
    small.facade.attributes[109] = 1024
    small.program.entry(x, 1024)
    with pytest.raises(DeviceRequirementError, match=r"1025 bytes over 'x'.*which allows 1024"):
        small.program.entry(x, 1025)
    with pytest.raises(DeviceRequirementError, match="1025"):
        small.program.bind((x, 1025))
    assert (len(r.facade.launched), len(small.facade.launched)) == (1, 1)


def limits(r: Any) -> list[int]:
    return [entry[1] for entry in seen(r, "set_persisting_limit")]


def test_the_set_aside_is_the_largest_request_until_the_last_close(any_rig: Any, tensor: Any) -> None:
    first, second = any_rig(windowed()), any_rig(windowed())
    second.program._context.windows.facade = second.program._context.facade = first.facade
    first.program.entry(tensor("float32", 10_000), 0)
    second.program.entry(tensor("float32", 20_000), 0)
    first.program.entry(tensor("float32", 10_000), 0)
    assert limits(first) == [40_000, 80_000]
    first.program.entry(tensor("float32", 1 << 20), 0)
    assert limits(first)[2:] == [1 << 20], "the device's most"
    first.program.close()
    assert limits(first)[3:] == [80_000]
    second.program.close()
    assert limits(first)[4:] == [4096], "as it was"


def test_hits_that_do_not_persist_set_nothing_aside(any_rig: Any, tensor: Any) -> None:
    r = any_rig(windowed(hit_property="streaming"))
    r.program.entry(tensor("float32", 1000), 0)
    r.program.close()
    assert seen(r, "set_persisting_limit") == []


def test_where_there_is_no_such_limit_windows_are_still_set(any_rig: Any, tensor: Any) -> None:
    r = any_rig(windowed())
    r.facade.limit = None
    r.program.entry(tensor("float32", 1000), 0)
    assert r.facade.launched[-1].window is not None
    r.program.close()
    assert seen(r, "set_persisting_limit") == []


def test_setting_aside_cannot_be_captured_but_the_window_is(any_rig: Any, tensor: Any) -> None:
    r = any_rig(windowed())
    r.facade.captured.add(9)
    x = tensor("float32", 1000)
    r.program.preload(0)
    with pytest.warns(SetAsideWarning, match="4000 bytes of kernel 'k'"):
        r.program.call((x, 0), stream=9)
    assert limits(r) == []
    r.program.entry(x, 0)
    assert limits(r) == [4000]
    r.program.call((x, 0), stream=9)
    assert [launch.stream for launch in r.facade.launched] == [9, 100, 9]
    assert {launch.window for launch in r.facade.launched} == {(x.address, 4000)}


@pytest.mark.parametrize("way", ["entry", "call", "bind"])
def test_who_captures_a_window_is_told_in_which_line_of_his(any_rig: Any, tensor: Any, way: str) -> None:
    r, x = any_rig(windowed()), tensor("float32", 1000)
    r.facade.captured.add(9)
    r.program.preload(0)
    given = (x, 0) if way == "entry" else ((x, 0),)
    with pytest.warns(SetAsideWarning) as told:
        getattr(r.program, way)(*given, stream=9)
    assert [one.filename for one in told] == [__file__]


@pytest.mark.parametrize(
    ("extent", "fields", "device_most", "known"),
    [
        ("n", {"nbytes": 512}, 1 << 24, 512),
        (1000, {}, 1 << 24, 4000),
        (1000, {"element_offset": 10}, 1 << 24, 3960),
        (1000, {}, 1024, 1024),
        ("large", {}, 1024, 1024),
        ("n", {}, 1024, None),
        ("n", {"nbytes": "b"}, 1 << 24, None),
        (1000, {"hit_property": "streaming"}, 1 << 24, None),
        (1000, {"policy": "stream"}, 1 << 24, None),
    ],
)
def test_preloading_sets_aside_what_every_call_needs(
    any_rig: Any, tensor: Any, extent: Any, fields: dict[str, Any], device_most: int, known: int | None
) -> None:
    r = any_rig(windowed(extent, **fields))
    r.facade.attributes[109] = device_most
    r.program.preload(1)
    assert limits(r) == ([] if known is None else [known])
    entered = [entry for entry in r.facade.log if entry[0] in {"enter", "leave"} and entry[1:] in {(1,), ()}]
    assert [entry[0] for entry in entered] == ["enter", "leave"] * (1 if known is None else 2)
    if known is None:
        return
    r.facade.captured.add(9)
    r.facade.stream_devices[9] = 1
    r.program.call((tensor("float32", 1000, ordinal=1), 0), stream=9)
    assert r.facade.launched[-1].window[1] == known
    r.program.preload(1)
    assert limits(r) == [known]
    r.program.close()
    assert limits(r)[1:] == [4096]


def test_a_window_whose_share_of_the_cache_is_the_devices_is_known(any_rig: Any, tensor: Any) -> None:
    """Beyond what persists at most, a longer window has no larger share."""
    r = any_rig(windowed("large"))
    r.facade.attributes[108] = 512
    r.program.preload(0)
    assert limits(r) == [512]
    for extent in (1000, 5000):
        r.program.entry(tensor("float32", extent), 0)
    assert limits(r) == [512]


def test_a_first_call_sets_aside_what_it_needs_itself(any_rig: Any, tensor: Any) -> None:
    r = any_rig(windowed(1000, when=False))
    r.program.entry(tensor("float32", 1000), 0)
    assert limits(r) == []
    r = any_rig(windowed(1000, when=True))
    r.program.entry(tensor("float32", 1000), 0)
    assert limits(r) == [4000]


def test_a_window_whose_hits_do_not_persist_takes_no_other_windows_share(any_rig: Any, tensor: Any) -> None:
    p = ProgramBuilder("p", CODE)
    (n,) = symbols("n")
    x, y = p.input("x", "float32", (n,)), p.input("y", "float32", (n,))
    p.launch("k", (x,), 1, 32, window=x.window(hit_property="streaming"))
    p.launch("k", (y,), 1, 32, window=y.window(element_offset=n // 2))
    r = any_rig(p.build())
    r.program.entry(tensor("float32", 1000), tensor("float32", 1000))
    assert limits(r) == [2000]


def test_binding_sets_aside_so_that_the_launch_can_be_captured(any_rig: Any, tensor: Any) -> None:
    r = any_rig(windowed())
    x = tensor("float32", 1000, ordinal=1)
    r.facade.stream_devices[9] = 1
    bound = r.program.bind((x, 0), stream=9)
    assert limits(r) == [4000]
    r.facade.captured.add(9)
    bound()
    assert r.facade.launched[-1].window == (x.address, 4000)


STEPS = ("set_persisting_limit", "set_stream_window", "launch", "reset_persisting")


def test_a_streams_window_is_set_around_the_launch_and_taken_back(any_rig: Any, tensor: Any) -> None:
    r = any_rig(windowed(policy="stream"))
    x = tensor("float32", 1000)
    for _ in range(2):
        r.facade.log.clear()
        r.program.call((x, 0), stream=9)
        assert seen(r, *STEPS) == [
            ("set_persisting_limit", 4000),
            ("set_stream_window", 9, SPEC, x.address, 4000),
            ("launch", "k"),
            ("set_stream_window", 9, SPEC, x.address, 0),
            ("reset_persisting", 9),
            ("set_persisting_limit", 4096),
        ]
        assert r.facade.launched[-1].window is None


@pytest.mark.parametrize("method", STEPS)
def test_a_streams_window_is_taken_back_after_an_error(any_rig: Any, tensor: Any, method: str) -> None:
    r = any_rig(windowed(policy="stream"))
    x = tensor("float32", 1000)

    def refuse(*_: object) -> None:
        del r.facade.on[method]
        raise DriverError("cuAny", 1, "CUDA_ERROR_INVALID_VALUE")

    r.facade.on[method] = refuse
    with pytest.raises(DriverError):
        r.program.call((x, 0), stream=9)
    last = seen(r, *STEPS)[-3:]
    if method != "set_persisting_limit":
        assert last == [
            ("set_stream_window", 9, SPEC, x.address, 0),
            ("reset_persisting", 9),
            ("set_persisting_limit", 4096),
        ]
    r.facade.log.clear()
    r.program.call((x, 0), stream=9)
    assert len(seen(r, *STEPS)) == 6


@pytest.mark.parametrize("failing", [STEPS[1:], ("set_stream_window", "reset_persisting"), STEPS[3:]])
def test_the_first_of_several_errors_is_raised(any_rig: Any, tensor: Any, failing: tuple[str, ...]) -> None:
    r = any_rig(windowed(policy="stream"))
    r.program.call((tensor("float32", 1000), 0), stream=9)

    def refuse(method: str, *_: object) -> None:
        raise DriverError(method, 700, "CUDA_ERROR_ILLEGAL_ADDRESS")

    for method in failing:
        r.facade.on[method] = functools.partial(refuse, method)
    r.facade.log.clear()
    with pytest.raises(DriverError, match=failing[0]):
        r.program.call((tensor("float32", 1000), 0), stream=9)
    assert seen(r, *STEPS)[-1] == ("set_persisting_limit", 4096), "every other step is done"


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_what_an_interrupt_keeps_a_streams_window_from_giving_back_close_does(
    any_rig: Any, tensor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = any_rig(windowed(policy="stream"))
    with monkeypatch.context() as patch:
        patch.setattr(r.facade.set_aside, "release", interrupt)
        with pytest.raises(KeyboardInterrupt):
            r.program.call((tensor("float32", 1000), 0), stream=9)
    r.program.close()
    assert limits(r) == [4000, 4096]


def test_a_streams_window_cannot_be_captured(any_rig: Any, tensor: Any) -> None:
    r = any_rig(windowed(policy="stream"))
    r.program.preload(0)
    bound = r.program.bind((tensor("float32", 10), 0), stream=9)
    r.facade.captured.add(9)
    r.facade.log.clear()
    for call in (lambda: r.program.call((tensor("float32", 10), 0), stream=9), bound):
        with pytest.raises(CaptureError, match="policy 'launch'"):
            call()
    assert seen(r, *STEPS) == []


def test_a_bound_launch_that_cannot_be_captured_fills_nothing(any_rig: Any, tensor: Any) -> None:
    p = ProgramBuilder("p", CODE)
    x, y = p.input("x", "float32", (8,)), p.output("y", "float32", (8,), fill=0)
    p.launch("k", (x, y), 1, 32, window=x.window(hit_ratio=0.5, policy="stream"))
    r = any_rig(p.build())
    bound = r.program.bind((tensor("float32", 8),), stream=9)
    r.facade.captured.add(9)
    with pytest.raises(CaptureError, match="policy 'launch'"):
        bound()
    assert seen(r, "fill", *STEPS) == []


REFUSED = DriverError("cuCtxSetLimit", 2, "CUDA_ERROR_OUT_OF_MEMORY")


def test_a_second_close_gives_back_what_the_first_could_not(any_rig: Any, tensor: Any) -> None:
    r = any_rig(windowed())
    r.program.entry(tensor("float32", 1000), 0)

    def refuse(_: int) -> None:
        del r.facade.on["set_persisting_limit"]
        raise REFUSED

    r.facade.on["set_persisting_limit"] = refuse
    with pytest.raises(DriverError):
        r.program.close()
    assert r.facade.limit == 4000
    r.program.close()
    r.program.close()
    assert limits(r) == [4000, 4096, 4096]
    assert r.facade.limit == 4096
    assert (r.facade.count("unload"), r.facade.count("synchronize")) == (1, 1)
