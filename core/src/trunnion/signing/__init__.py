"""Signatures of what is loaded: by keys that the caller trusts, or by an identity that a log vouches for."""
