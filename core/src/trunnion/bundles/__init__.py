"""Bundles: many programs, built for many targets, in a thin index and one file for each architecture."""
