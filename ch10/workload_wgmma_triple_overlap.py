"""Product of two bf16 matrices on Hopper's tensor cores, with sums in registers: c = a b^T, as shared_matmul.py states it.

Each side has the tile that suits it. Two blocks per SM leave a thread of the baseline 128 registers for its sums and the chunks that it
loads: 64 + 32 registers with a tile of 128 columns, 96 + 40 with 192 columns. The narrower tile is the faster baseline, so it has that.

Predicted: the times of former rows, of this baseline on one H200 and of the optimized tiles on another.

Measured: RESULTS.md. All four times are near their predictions.

Why: at k = 8192 the tensor cores are active in 42 % of the baseline's cycles and in 96 % of the optimized side's
(sm__pipe_tensor_cycles_active, H200).
"""
# traffic: a, b and c are 134 MB each at k = 8192, and the L2 holds 60 MB: a and b are read several times, as by torch.mm
# needs: wgmma, tma

from shared_matmul import MATMUL

WORKLOAD = MATMUL
