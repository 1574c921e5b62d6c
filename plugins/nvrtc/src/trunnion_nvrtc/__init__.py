"""The NVRTC backend of trunnion."""
