"""An SM as the predictions of chapters 9 and 10 take it to be: the constants of their formulas, each once, and where it is from.

A test that begins with "Prose against formula" proves that what a file says was expected follows from these numbers and from the shapes
and the machine code of the sides. It says nothing of whether they are true: that a run on a GPU shows.
"""

SMS = 132
"""Of an H200."""

SCHEDULERS = 4
"""Of an SM, each of which issues an instruction of one warp a cycle."""

LATENCY = 600
"""Cycles until what a thread asks the L2 for is there. An assumption, for Blackwell as for Hopper."""

L2_PORT = 64
"""Bytes that an SM gets from the L2 in a cycle, at most. An assumption for Blackwell."""

SHARED = 128
"""Bytes that shared memory takes or gives in a cycle: 32 banks of 4."""

FFMA = 128
"""Multiply-adds of an SM's CUDA cores in a cycle."""

WGMMA = 2048
"""Multiply-adds of bf16 by an SM of Hopper in a cycle: 989 TFLOP/s of 132 SMs at 1.83 GHz."""

MMA_SYNC = 1280
"""Those by mma.sync, 5/8 of wgmma's, as predictions take it: arXiv:2501.12084, section 6.2, found 62.9 % of the peak on average on Hopper,
and wgmma above 95 %. `peak` measured 1353 since, bf16_mma_sync, on two H200s: 632 and 637 TFLOP/s at 1.77 and 1.78 GHz. On Blackwell they
are assumed to be as many."""

TCGEN05 = 4096
"""Multiply-adds of bf16 by an SM of Blackwell in a cycle."""

READ, COPY = 4.6, 4.1
"""TB/s of an H200's DRAM that is only read, and read and written at once."""


def loaded_by_threads(bytes_of_a_step):
    """Cycles of a step's tiles by a block that waits: until they come, for them to pass the port, and to store them to shared memory."""
    return LATENCY + bytes_of_a_step / L2_PORT + bytes_of_a_step / SHARED
