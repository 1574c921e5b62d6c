"""Laws on a GPU: what the driver is asked, what each kernel received, and what a captured graph holds.

Nothing stands between a launcher and the driver there. What the driver is asked comes from CUPTI, which tells of each
call; every kernel is a probe that writes back the parameters and the geometry that it got; a captured graph is read
back by the driver. All three have to agree before the oracle is asked: see `trunnion.testing.gpu.machine`.
"""
