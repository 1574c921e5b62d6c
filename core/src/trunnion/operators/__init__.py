"""A program as an operator of torch, and as a call of JAX."""
