// What every generated launcher for the CPU stands on: the same calls and checks as for CUDA, and a grid loop in the
// place of a driver. It names only TVM-FFI's C ABI.
#pragma once

#include <trunnion/float_expressions.hpp>
#include <trunnion/host_run.hpp>
#include <trunnion/numbers.hpp>
#include <trunnion/python_entry.hpp>
#include <trunnion/scalars.hpp>
