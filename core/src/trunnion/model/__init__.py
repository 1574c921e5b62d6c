"""The model: frozen values that describe a program, in pure Python."""
