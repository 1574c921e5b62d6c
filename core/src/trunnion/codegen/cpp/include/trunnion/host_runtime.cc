// As launch_runtime.cc, for launchers on the CPU.
#include <trunnion/host_runtime.hpp>

#include <trunnion/host_grid.cc>
#include <trunnion/host_run.cc>
#include <trunnion/instances.cc>
#include <trunnion/layouts.cc>
#include <trunnion/python_call.cc>
#include <trunnion/python_entry.cc>
#include <trunnion/python_memory.cc>
#include <trunnion/run.cc>
#include <trunnion/value_runtime.cc>
