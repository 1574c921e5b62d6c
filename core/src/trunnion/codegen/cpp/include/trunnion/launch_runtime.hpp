// What every generated CUDA launcher stands on. It names only TVM-FFI's C ABI and cuda.h, and nothing of the standard
// library's runtime, so that a launcher compiles in about a tenth of a second and needs no C++ library where it runs.
//
// All state lies in a `Program`: two launchers share nothing. A function that can fail returns false
// once its error is raised.
#pragma once

#include <trunnion/cuda_run.hpp>
#include <trunnion/numbers.hpp>
#include <trunnion/python_entry.hpp>
#if __has_include(<trunnion/scalars.hpp>)
#include <trunnion/float_expressions.hpp>
#include <trunnion/scalars.hpp>
#endif
