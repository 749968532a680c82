"""Product of two bf16 matrices by mma.sync: c = a b^T, as shared_matmul.py states it.

Expected 1.7x, and 1.57x at k = 8192 and 1.35x at 1024 on an H200 (2026-11-22). An SM has 16 tiles. On another (2026-11-23) a step takes,
from one depth to the other, 1.96 us and 1.21: at 1.74 and 1.80 GHz, as the sides' stamps have it, 3420 cycles where 3648 were counted,
and 2170 where 2086 were. So the baseline waits less for its loads. Products are 1550 of these cycles, as mma.sync makes 1353 FMAs in one
(`peak`), and not 1280: tensor cores are active in 45 and 69 % of cycles (sm__pipe_tensor_cycles_active). Beside its steps a tile takes the
optimized side 3.7 us more, of 23 at k = 1024, as nothing hides its first copies and its store; that was not counted, and the baseline,
which waits for all its loads alike, loses next to nothing there.
"""
# traffic: a, b and c are 134 MB each at k = 8192, and the L2 holds 60 MB: a and b are read several times, as by torch.mm

from shared_matmul import MATMUL

WORKLOAD = MATMUL
