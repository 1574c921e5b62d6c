"""The Python launcher: text made by `emitter`, run over a `facade` by `program`, with the static parts in `support`."""
