"""The extension, for setuptools: of the stable ABI of Python 3.11, so one wheel serves every later version."""

from setuptools import Extension, setup

FOLDER = "src/trunnion_fastcall"

setup(
    ext_modules=[
        Extension(
            "trunnion_fastcall._helper",
            [f"{FOLDER}/{name}.c" for name in ("caller", "models", "module", "reader")],
            depends=[f"{FOLDER}/{name}.h" for name in ("exchange", "helper", "reader")],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            extra_compile_args=["-O2", "-std=c11", "-Wall", "-Wextra", "-fvisibility=hidden"],
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
