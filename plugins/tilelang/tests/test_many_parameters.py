"""A kernel of very many tensors: each nests the host function's statements deeper."""

import tilelang.language as T


def test_two_hundred_tensors(imported, tmp_path, monkeypatch):
    names = [f"x{index}" for index in range(200)]
    parameters = ", ".join(f"{name}: T.Tensor((64,), 'float32')" for name in names)
    source = (
        "import tilelang.language as T\n\n\n@T.prim_func\n"
        f"def main({parameters}):\n"
        "    with T.Kernel(1, threads=64):\n"
        "        for i in T.Parallel(64):\n"
        f"            x0[i] = {' + '.join(f'{name}[i]' for name in names)}\n"
    )
    (tmp_path / "many_tensors.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    import many_tensors

    program = imported(many_tensors.main)
    assert [param.name for param in program.signature.params] == names
    assert sorted(arg.name for arg in program.launches[0].args) == sorted(names)
    assert T is many_tensors.T
