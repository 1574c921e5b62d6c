// The part of every CUDA launcher that no call comes through on its way, and no program changes: compiled once by each
// toolchain, and linked into each launcher.
#include <trunnion/launch_runtime.hpp>

#include <trunnion/cuda_run.cc>
#include <trunnion/driver.cc>
#include <trunnion/driver_layouts.cc>
#include <trunnion/instances.cc>
#include <trunnion/l2_persisting.cc>
#include <trunnion/launching.cc>
#include <trunnion/maps.cc>
#include <trunnion/program.cc>
#include <trunnion/python_call.cc>
#include <trunnion/python_entry.cc>
#include <trunnion/python_memory.cc>
#include <trunnion/run.cc>
#include <trunnion/value_runtime.cc>
#include <trunnion/variables.cc>
#include <trunnion/windows.cc>
