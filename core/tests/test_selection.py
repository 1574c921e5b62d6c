from __future__ import annotations

from dataclasses import replace

import pytest

import trunnion
from trunnion import Capability, DeviceCode, KernelProgram, ProgramBuilder, explain, symbols
from trunnion.contract.spec import Availability, BackendSpec, CompilerSpec
from trunnion.errors import (
    ArgumentTypeError,
    BackendUnavailableError,
    ProgramError,
    UnknownBackendError,
    UnsupportedFeatureError,
)
from trunnion.registry import Registry
from trunnion.selection import (
    check_forms,
    choose_backend,
    choose_compiler,
    load_part,
    named_target,
    target_kinds,
)


def never():
    raise AssertionError("choosing must not import a toolchain")


def backend(name, capabilities=(), *, kind="cuda", accepts=("cubin",), rank=0, usable=True):
    return BackendSpec(
        name=name,
        contract_version=3,
        targets={kind: frozenset(capabilities)},
        accepts=accepts,
        load_wrapper=never,
        load_adapter=never,
        auto_rank=rank,
        probe=lambda: Availability(usable=usable, detail=f"{name} lacks its library; install it"),
    )


def compiler(name="cc", languages=("cuda",), *, produces=("cubin",), targets=("cuda",), rank=0, usable=True):
    return CompilerSpec(
        name=name,
        contract_version=3,
        languages=languages,
        targets=targets,
        produces=produces,
        load_compiler=never,
        auto_rank=rank,
        probe=lambda: Availability(usable=usable, detail="missing"),
    )


def registry(*specs):
    made = Registry(())
    for spec in specs:
        made.register(spec)
    return made


def program(*, cluster=None, pdl=False, language="cuda", target=""):
    (n,) = symbols("n")
    p = ProgramBuilder("p", DeviceCode(language, "text", target=target))
    x = p.input("x", "float32", (n,))
    p.launch("k", args=(x,), grid=2, block=1, cluster=cluster, pdl=pdl)
    return p.build()


def choose(subject, plugins, name="auto"):
    return choose_backend(subject, name, subject.plan(), plugins).name


DYNAMIC = {Capability.DYNAMIC_SHAPES}


def test_the_highest_rank_wins_then_the_name():
    plugins = registry(
        backend("b", DYNAMIC), backend("a", DYNAMIC), backend("c", DYNAMIC, rank=5), compiler()
    )
    assert choose(program(), plugins) == "c"
    plugins = registry(backend("b", DYNAMIC), backend("a", DYNAMIC), compiler())
    assert choose(program(), plugins) == "a"


def test_what_cannot_work_here_is_passed_over_with_its_reason():
    plugins = registry(backend("a", DYNAMIC, usable=False), backend("b"), backend("c", DYNAMIC), compiler())
    assert choose(program(), plugins) == "c"
    choices = {choice.backend: choice for choice in explain(program(), registry=plugins)}
    assert choices["c"].chosen
    assert "install it" in choices["a"].reason
    assert choices["b"].reason == "does not support dynamic_shapes"


@pytest.mark.parametrize("given", [ProgramBuilder("p", DeviceCode("cuda", "text")), "p", None, KernelProgram])
@pytest.mark.parametrize("ask", [explain, trunnion.compile])
def test_what_is_no_program_is_refused_with_the_way_to_one(ask, given):
    with pytest.raises(ArgumentTypeError) as caught:
        ask(given, registry=registry())
    assert f"got {type(given).__name__}, expected a KernelProgram" in str(caught.value)
    assert "ProgramBuilder.build()" in str(caught.value)
    assert "CompiledProgram.program" in str(caught.value)


def test_the_registry_must_be_one():
    with pytest.raises(ArgumentTypeError, match="a Registry"):
        explain(program(), registry="none")


def test_the_only_backend_being_unusable_is_said_as_that():
    with pytest.raises(BackendUnavailableError) as caught:
        choose(program(), registry(backend("a", DYNAMIC, usable=False), compiler()))
    error = caught.value
    assert (error.name, error.reason) == ("a", "a lacks its library; install it")
    assert error.distribution == "this process", "who registered it"


def test_a_refusal_names_only_what_is_missing():
    plugins = registry(backend("a", DYNAMIC), backend("b", DYNAMIC | {Capability.PDL}), compiler())
    with pytest.raises(UnsupportedFeatureError) as caught:
        choose(program(cluster=(2, 1, 1), pdl=True), plugins)
    assert caught.value.features == ("cluster",)
    assert str(caught.value).splitlines() == [
        "no installed backend supports cluster",
        "  cluster: launches[0].cluster",
        "  a: does not support cluster, pdl",
        "  b: does not support cluster",
    ]


def test_a_backend_that_no_compiler_serves_either_does_not_hide_that_one_is_missing():
    plugins = registry(backend("able", DYNAMIC), backend("bare"), compiler())
    with pytest.raises(UnsupportedFeatureError, match="install a device compiler for it") as caught:
        choose(program(language="c++"), plugins)
    assert caught.value.features == ("this program",)
    assert "bare: does not support dynamic_shapes" in str(caught.value)


def test_capabilities_of_two_kinds_of_target_are_not_added_up():
    spec = BackendSpec(
        name="split",
        contract_version=3,
        targets={"cuda": frozenset({Capability.CLUSTER}), "cpu": frozenset(DYNAMIC)},
        accepts=("cubin",),
        load_wrapper=never,
        load_adapter=never,
    )
    with pytest.raises(UnsupportedFeatureError):
        choose(program(cluster=2), registry(spec, compiler()))


EVERYTHING = frozenset(Capability)


def both(name="both", *, cuda=EVERYTHING, cpu=frozenset(DYNAMIC), rank=0):
    spec = backend(name, accepts=("cubin", "object"), rank=rank)
    return replace(spec, targets={"cuda": cuda, "cpu": cpu})


def host_compiler(name="hostcc", languages=("c++",), **fields):
    return compiler(name, languages, produces=("object",), targets=("cpu",), **fields)


def test_what_a_backend_can_do_on_gpus_is_of_no_use_to_a_program_for_the_cpu():
    """A compiler makes the link between a program's language and a kind of device."""
    plugins = registry(both(rank=9), backend("gpu", EVERYTHING), compiler(), host_compiler())
    with pytest.raises(UnsupportedFeatureError) as caught:
        choose(program(cluster=2, language="c++"), plugins)
    assert "\n  both: does not support cluster\n" in str(caught.value)
    assert "\n  gpu: no installed device compiler makes of c++" in str(caught.value)
    assert choose(program(language="c++"), plugins) == "both"
    assert choose(program(cluster=2), plugins) == "both"


def test_what_is_missing_for_one_kind_of_target_is_no_matter_to_another():
    partly = Availability(usable=True, detail="g++", unusable={"cuda": "there is no cuda.h"})
    known = registry(replace(both(), probe=lambda: partly), compiler(), host_compiler())
    for_cpu, for_cuda = program(language="c++"), program()
    for kind in (None, "cpu"):
        assert choose_backend(for_cpu, "auto", for_cpu.plan(), known, kind).name == "both"
    with pytest.raises(BackendUnavailableError, match=r"there is no cuda\.h"):
        choose_backend(for_cuda, "auto", for_cuda.plan(), known)
    assert [choice.reason for choice in explain(for_cuda, registry=known)] == ["there is no cuda.h"]


@pytest.mark.parametrize(
    "said",
    [Availability(usable=False, detail=""), Availability(usable=True, detail="", unusable={"cuda": ""})],
)
def test_a_plugin_that_cannot_be_used_and_says_not_why_is_not_chosen(said):
    silent = replace(backend("silent", DYNAMIC, rank=9), probe=lambda: said)
    plugins = registry(silent, backend("other", DYNAMIC), compiler())
    assert choose(program(), plugins) == "other"
    assert explain(program(), registry=plugins)[0].reason == "it says that it cannot be used, and not why"


@pytest.mark.parametrize(
    "fields",
    [
        {"usable": "no"},
        {"usable": None},
        {"detail": None},
        {"detail": 7},
        {"unusable": None},
        {"unusable": ["cuda"]},
        {"unusable": {"cuda": None}},
        {"unusable": {7: ""}},
    ],
)
def test_a_probe_whose_answer_is_none_hurts_its_plugin_alone(fields):
    def probe():
        return Availability(**({"usable": True, "detail": ""} | fields))

    plugins = registry(
        replace(backend("odd", DYNAMIC, rank=9), probe=probe), backend("other", DYNAMIC), compiler()
    )
    assert choose(program(), plugins) == "other"
    (field,) = fields
    assert f"its probe failed: trunnion.errors.ProgramError: {field}: got" in (
        explain(program(), registry=plugins)[0].reason
    )


def test_what_a_backend_can_do_on_the_cpu_is_of_no_use_to_a_program_in_cuda():
    limited = both(cuda=frozenset(), cpu=EVERYTHING, rank=9)
    plugins = registry(limited, backend("gpu", DYNAMIC), compiler(), host_compiler())
    assert choose(program(), plugins) == "gpu"
    reasons = {choice.backend: choice.reason for choice in explain(program(), registry=plugins)}
    assert reasons == {"both": "does not support dynamic_shapes", "gpu": "chosen"}
    assert target_kinds(program(), limited, plugins.compilers()) == ("cuda",)
    assert target_kinds(program(language="c++"), limited, plugins.compilers()) == ("cpu",)


def test_a_named_kind_of_target_decides():
    """A language that can be compiled for both goes where the caller says."""
    either = compiler("either", ("either",), produces=("cubin", "object"), targets=("cuda", "cpu"))
    plugins = registry(both(), backend("gpu", DYNAMIC, rank=5), either)
    subject = program(language="either")
    plan = subject.plan()
    assert choose_backend(subject, "auto", plan, plugins).name == "gpu"
    assert choose_backend(subject, "auto", plan, plugins, "cuda").name == "gpu"
    assert choose_backend(subject, "auto", plan, plugins, "cpu").name == "both"
    with pytest.raises(UnsupportedFeatureError) as caught:
        choose_backend(subject, "auto", plan, plugins, "rocm")
    assert "\n  gpu: does not launch on 'rocm', only on cuda\n" in str(caught.value)
    assert str(caught.value).endswith("\n  both: does not launch on 'rocm', only on cpu, cuda")
    assert target_kinds(subject, both(), plugins.compilers()) == ("cpu", "cuda")
    assert target_kinds(subject, both(), plugins.compilers(), "cuda") == ("cuda",)
    assert target_kinds(program(cluster=2, language="either"), both(), plugins.compilers()) == ("cuda",)


def test_explaining_reads_the_target_that_the_code_names():
    either = compiler("either", ("either",), produces=("cubin", "object"), targets=("cuda", "cpu"))
    plugins = registry(both(), backend("gpu", DYNAMIC, rank=5), either)
    choices = explain(program(language="either", target="cpu"), registry=plugins)
    assert {choice.backend: choice.chosen for choice in choices} == {"gpu": False, "both": True}


def test_the_compiler_serves_the_kind_that_is_wanted():
    plugins = registry(
        compiler("gpu", ("either",), rank=9), host_compiler("host", ("either",)), compiler("cc", ("cuda",))
    )
    subject = program(language="either")
    assert choose_compiler(subject, None, both(), plugins).name == "gpu"
    assert choose_compiler(subject, None, both(), plugins, "cpu").name == "host"
    assert choose_compiler(subject, "gpu", both(), plugins, "cuda").name == "gpu"
    needy = program(language="either", cluster=2)
    assert choose_compiler(needy, None, both(cuda=frozenset(), cpu=EVERYTHING), plugins).name == "host"
    for name, kind, feature in (
        ("gpu", "cpu", "either for both on cpu"),
        (None, "rocm", "target 'rocm'"),
    ):
        with pytest.raises(UnsupportedFeatureError) as caught:
            choose_compiler(subject, name, both(), plugins, kind)
        assert caught.value.features == (feature,)
    with pytest.raises(UnsupportedFeatureError) as caught:
        choose_compiler(program(), None, both(), plugins, "cpu")
    assert caught.value.features == ("cuda on cpu",)


def test_parts_that_name_different_targets_are_refused():
    one = program(language="c++", target="cpu")
    assert str(named_target(one)) == "cpu"
    assert named_target(program()) is None
    two = replace(one, code=(*one.code, DeviceCode("c++", "more", target="sm_90a")))
    with pytest.raises(ProgramError, match="cpu, sm_90a"):
        named_target(two)


def test_a_backend_that_no_compiler_serves_is_passed_over():
    plugins = registry(backend("a", DYNAMIC, accepts=("ptx",)), compiler())
    with pytest.raises(UnsupportedFeatureError) as caught:
        choose(program(), plugins)
    assert "of cuda what it launches (ptx)" in str(caught.value)


def test_a_named_backend_is_taken_or_refused():
    plugins = registry(backend("a", DYNAMIC), compiler())
    assert choose(program(), plugins, "a") == "a"
    with pytest.raises(UnknownBackendError) as caught:
        choose(program(), plugins, "z")
    assert caught.value.available == ("a",)
    with pytest.raises(ArgumentTypeError):
        choose(program(), plugins, None)
    with pytest.raises(UnknownBackendError):
        choose(program(), registry())


def test_a_mistyped_target_is_told_how_one_is_written():
    plugins, written = registry(both(), compiler()), "'sm_90a', 'compute_90', 'cuda:sm_90a' or 'cpu'"
    subject = program()
    with pytest.raises(UnsupportedFeatureError, match=written) as caught:
        choose_backend(subject, "auto", subject.plan(), plugins, "sm90")
    assert str(caught.value).startswith("no installed backend supports target 'sm90'; expected a target")
    with pytest.raises(UnsupportedFeatureError, match=written):
        choose_compiler(subject, None, both(), plugins, "hopper")
    with pytest.raises(UnsupportedFeatureError) as caught:
        choose_compiler(subject, None, backend("gpu"), plugins, "cpu")
    assert written not in caught.value.hint


def test_a_compiler_for_another_kind_of_target_is_named_with_what_to_change():
    gpu = backend("gpu", DYNAMIC)
    plugins, subject = registry(both(), gpu, compiler(), host_compiler()), program(language="c++")
    for refuse, change in (
        (lambda: choose_compiler(subject, None, gpu, plugins), "choose another backend: both"),
        (lambda: choose_compiler(subject, None, both(), plugins, "cuda"), "leave out the target"),
        (lambda: choose_backend(subject, "auto", subject.plan(), plugins, "cuda"), "leave out the target"),
    ):
        with pytest.raises(UnsupportedFeatureError, match="hostcc compiles it for cpu, to object") as caught:
            refuse()
        assert change in caught.value.hint
        assert "install a device compiler" not in caught.value.hint
        assert "('" not in str(caught.value)
    for ask in (
        lambda subject: choose_compiler(subject, None, gpu, plugins),
        lambda subject: choose_backend(subject, "auto", subject.plan(), plugins),
    ):
        with pytest.raises(UnsupportedFeatureError, match=r"did you mean the language cuda\?"):
            ask(program(language="cudac"))
    with pytest.raises(UnsupportedFeatureError, match="install a device compiler for it"):
        choose_compiler(program(language="fortran"), None, gpu, plugins)


def test_the_compiler_follows_from_language_and_image():
    host = backend("a", DYNAMIC)
    plugins = registry(
        host,
        compiler("other", ("other",)),
        compiler("slow", usable=False, rank=9),
        compiler("ptx", produces=("ptx",)),
    )
    assert choose_compiler(program(), None, host, plugins).name == "slow"
    plugins.register(compiler("fine"))
    assert choose_compiler(program(), None, host, plugins).name == "fine"
    assert choose_compiler(program(language="other"), None, host, plugins).name == "other"
    with pytest.raises(UnsupportedFeatureError) as caught:
        choose_compiler(program(language="fortran"), None, host, plugins)
    assert caught.value.features == ("fortran",)
    with pytest.raises(UnsupportedFeatureError):
        choose_compiler(program(), "ptx", host, plugins)


@pytest.mark.parametrize("answer", ["raises", None, 5])
def test_a_probe_that_breaks_the_contract_hurts_nobody_else(answer):
    def broken():
        if answer == "raises":
            raise RuntimeError("no such library")
        return answer

    good = backend("good", DYNAMIC)
    plugins = registry(replace(backend("bad", DYNAMIC, rank=9), probe=broken), good, compiler())
    plugins.register(replace(compiler("badcc", rank=9), probe=broken))
    assert choose(program(), plugins) == "good"
    assert choose_compiler(program(), None, good, plugins).name == "cc"
    reasons = {choice.backend: choice.reason for choice in explain(program(), registry=plugins)}
    assert "its probe failed" in reasons["bad"]


def test_a_loader_that_fails_is_an_unavailable_backend():
    spec = backend("a", DYNAMIC)
    with pytest.raises(BackendUnavailableError) as caught:
        load_part(spec, spec.load_wrapper)
    assert caught.value.name == "a"
    assert "must not import" in caught.value.details
    assert str(caught.value).startswith("'a' is unavailable: AssertionError")
    with pytest.raises(BackendUnavailableError, match="not a class"):
        load_part(spec, lambda: 5)
    assert load_part(spec, lambda: int) is int


def test_code_in_a_language_that_nobody_compiles_for_the_target_says_so():
    plugins, subject = registry(both(), compiler(), host_compiler()), program()
    said = "the device code is in cuda, and the target is cpu, for which code is in c\\+\\+"
    with pytest.raises(UnsupportedFeatureError, match=f"supports cuda on cpu; {said}"):
        choose_backend(subject, "auto", subject.plan(), plugins, "cpu")
    with pytest.raises(UnsupportedFeatureError, match=said):
        choose_compiler(subject, None, both(), plugins, "cpu")


@pytest.mark.parametrize(
    ("language", "meant"), [("cpp", "c++"), ("cxx", "c++"), ("cu", "cuda"), ("cudaa", "cuda")]
)
def test_a_language_s_other_name_is_answered_with_its_own(language, meant):
    plugins, subject = registry(both(), compiler(), host_compiler()), program(language=language)
    with pytest.raises(UnsupportedFeatureError) as caught:
        choose_backend(subject, "auto", subject.plan(), plugins)
    assert f"did you mean the language {meant}?" in str(caught.value)


@pytest.mark.parametrize(
    ("source", "binary", "said"),
    [(b"x", False, "bytes in mine, .* as text"), ("x", True, "str in mine, .* as bytes")],
)
def test_code_in_the_other_form_than_its_compiler_reads_is_refused(source, binary, said) -> None:
    p = ProgramBuilder("p", DeviceCode("mine", source))
    p.launch("k", args=(), grid=1, block=1)
    known = replace(compiler(languages=("mine",)), binary_languages=("mine",) if binary else ())
    with pytest.raises(ProgramError, match=f"got {said}") as caught:
        check_forms(p.build(), known)
    assert caught.value.field == "code[0].source"
    check_forms(p.build(), replace(known, binary_languages=() if binary else ("mine",)))


def test_a_binary_language_is_one_of_a_compiler_s_languages() -> None:
    with pytest.raises(ProgramError, match="got 'other', expected some of cuda"):
        replace(compiler(), binary_languages=("other",))
