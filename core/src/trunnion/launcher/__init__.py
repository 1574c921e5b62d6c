"""What a Python launcher runs on: context, memory, driver; and the refusals that all backends share."""
