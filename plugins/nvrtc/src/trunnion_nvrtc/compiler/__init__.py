"""The device compiler: NVRTC and nvJitLink."""
