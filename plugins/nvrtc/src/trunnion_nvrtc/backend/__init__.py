"""The host side: Python launchers over the CUDA driver."""
