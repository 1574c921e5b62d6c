"""The C++ launcher: text made by `emitter`, built by `build`, run by `program`, with static parts in `include`."""
