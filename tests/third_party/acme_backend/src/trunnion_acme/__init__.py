"""A sample backend of trunnion: a Python launcher that calls the CUDA driver through ctypes. Copy it to begin yours."""
