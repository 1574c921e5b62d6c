"""The device compiler: C++ for the CPU."""
