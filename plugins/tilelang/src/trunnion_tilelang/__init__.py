"""TileLang's lowered kernels as trunnion programs."""
