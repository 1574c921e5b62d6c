"""Programs and kernels on the simulated driver, of the CUDA C++ or the image that a test's module has."""

from __future__ import annotations

import pytest
from cuda.bindings import driver

import trunnion


@pytest.fixture
def build(simulator, request):
    """Compile a program over the module's ``CODE``; a function over a builder says what it launches."""
    made = []

    def compiled(write):
        builder = trunnion.ProgramBuilder("p", request.module.CODE)
        write(builder)
        made.append(trunnion.compile(builder.build(), backend="nvrtc", target="sm_90a"))
        return made[-1]

    with simulator.torch_mode():
        yield compiled
    for program in made:
        program.close()


@pytest.fixture
def current_context(simulator):
    """Initialise the driver, and make the primary context of device 0 current."""
    ok(driver.cuInit(0))
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
    simulator.clear_trace()


@pytest.fixture
def kernels(current_context, request):
    """Load the module's ``IMAGE``; a function returns its kernel of a name."""
    library = ok(driver.cuLibraryLoadData(request.module.IMAGE, [], [], 0, [], [], 0))
    yield lambda name: ok(driver.cuLibraryGetKernel(library, name.encode()))
    ok(driver.cuLibraryUnload(library))


def ok(result):
    status, *values = result
    assert status == driver.CUresult.CUDA_SUCCESS
    return values[0] if values else None
