"""A copy that is not there is an error which says how to get it; this file alone needs no copies."""

from __future__ import annotations

import pytest
from real_programs import convolution, cutlass_gemm, flash_attention, kittens_gemm, paged_decode, reduction
from real_programs.copies import VARIABLE, Copy, MissingCopyError, none_at_all
from real_programs.excerpts import before, without_functions

SUBJECTS = (convolution, reduction, paged_decode, kittens_gemm, cutlass_gemm, flash_attention)
COPY = Copy("some", "1.0", "https://example.org/some", "v1.0", ("a.h", "b.h"))
CLONE = (
    "git init {0}/some-1.0 && git -C {0}/some-1.0 fetch --depth 1 https://example.org/some v1.0 && "
    "git -C {0}/some-1.0 checkout FETCH_HEAD"
)


def test_no_folder_of_copies(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(MissingCopyError, match="TRUNNION_SOURCES") as caught:
        COPY.folder()
    assert CLONE.format("FOLDER") in str(caught.value)


def test_a_copy_that_lacks_a_file(monkeypatch, tmp_path):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    (tmp_path / COPY.name).mkdir()
    (tmp_path / COPY.name / "a.h").write_text("int a;", "utf-8")
    with pytest.raises(MissingCopyError, match=r"has no b\.h") as caught:
        COPY.folder()
    assert CLONE.format(tmp_path) in str(caught.value)
    (tmp_path / COPY.name / "b.h").touch()
    assert COPY.folder() == tmp_path / COPY.name
    assert COPY.text("a.h") == "int a;"
    assert COPY.includes("", "x")[1] == f"--include-path={tmp_path}/some-1.0/x"


def test_no_copy_at_all_is_said_once(monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert none_at_all(
        (COPY,)
    ) == f"{VARIABLE} names no folder of copies; get one, or all of them:\n" + CLONE.format("FOLDER")
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert none_at_all((COPY, COPY)).split("\n")[1:] == [CLONE.format(tmp_path)] * 2
    (tmp_path / COPY.name).mkdir()
    assert not none_at_all((COPY,))


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.COPY.name)
def test_every_subject_says_shapes_and_tolerance_beforehand(subject):
    assert subject.SHAPES
    assert set(subject.TOLERANCE) == {"rtol", "atol"}
    assert subject.COPY.revision


def test_functions_of_the_host_are_cut_out_and_lines_keep_their_numbers():
    text = "void a(int x)\n{\n    b();\n}\nint c;\nvoid d() {\n    e();\n}\nint f;"
    assert without_functions(text, "void a(", "void d(").split("\n") == [
        "",
        "",
        "",
        "",
        "int c;",
        "",
        "",
        "",
        "int f;",
    ]
    assert before(text, "void d(") == "void a(int x)\n{\n    b();\n}\nint c;"
    for cut in (without_functions, before):
        with pytest.raises(ValueError, match="0 lines begin with 'void g"):
            cut(text, "void g(")
        with pytest.raises(ValueError, match="2 lines begin with 'int "):
            cut(text, "int ")
