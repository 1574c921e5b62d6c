"""The host side: a C++ launcher beside its image."""
