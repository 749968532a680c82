"""Product of two bf16 matrices, c = a b^T, by a cluster per tile, or by as many clusters as the GPU runs at once.

Predicted: 16 tiles per SM. Products take 86 us per tile at k = 8192 and 11 us at k = 1024. Between two tiles the baseline waits 1 us or
3 us for two free SMs and for first operands, and 1.6 us for its store: 4 panels of 600 cycles. The optimized side hides both.
An earlier baseline stored from registers, so that pair measured two ideas as one. Now both sides store by the TMA.

Measured: RESULTS.md. The shallow product gains less than predicted.

Why: in cycles the gain is the predicted one. The tensor cores of the optimized side never rest (active in 99 % of cycles, 94 % in the
baseline, sm__pipe_tensor_cycles_active at k = 8192, H200), and the clock is lower. Hypothesis: they draw more power. At k = 1024 it was
1.71 GHz in the baseline and 1.59 GHz in the optimized side; at k = 8192, 1.59 GHz and 1.56 GHz. Outside its K-steps a tile takes the
baseline 8500 cycles, and the optimized side 1600 at k = 1024 and 2300 at k = 8192.
"""

# traffic: a, b and c are 134 MB each at k = 8192, and the L2 holds 60 MB: a and b are read 4.6 times, about as often as by torch.mm
# needs: wgmma, tma, clusters
from shared_clustered_matmul import MATMUL, clustered

WORKLOAD = clustered(MATMUL.time_at)
