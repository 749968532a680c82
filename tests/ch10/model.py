"""An SM as the predictions of chapters 9 and 10 take it to be: the constants of their formulas, each once, and where it is from.

Tests compare with them what shapes, constants and machine code of the sides are. Whether they are true, a run on a GPU shows.
"""

SMS = 132
"""Of an H200."""

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
