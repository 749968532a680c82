"""Gather the vectors of some tokens from a weight that is stored transposed: y[i, f] = weight[f, token[i]], in float32.

The weight has a row per feature. Two ways lead there: a checkpoint stored column-major, or a table tied to an output projection.
(A projection kept as features x vocabulary, for hidden @ weight, is that matrix.)

Predicted: 4.5x. The baseline moves a sector of 32 bytes per float and 4 bytes of output. The optimized side moves 4 and 4.
The packing happens once, in prepare, and is reported as set-up time.

Measured: RESULTS.md. The baseline takes far longer than predicted. The optimized side is near its prediction.

Why: DRAM delivers two sectors per float, 64 bytes, of which 4 are used: the ratio of dram__bytes_read.sum in RESULTS.md shows it.
DRAM is also less busy than for the optimized side (gpu__dram_throughput in expectations_h200.json), although all warps wait for loads.
sm__warps_active is 95 %, and long_scoreboard is 188 of 194 cycles per instruction (H200).
Hypothesis, not tested: each 64 bytes open another DRAM page, which no counter of the profile shows.
The L2 is busier than DRAM then (lts__throughput in expectations_h200.json); nothing tells whether it is the limit.
The optimized side misses its ceiling since a warp waits for its token's index before it asks for 512 bytes.
Half of its load requests are for indices (l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum, H200).
"""

import torch

from common import Spec, Workload


def inputs(rand, features, vocabulary, tokens):
    return {"weight": rand.normal(features, vocabulary), "token": rand.permutation(vocabulary)[:tokens]}


def work(features, vocabulary, tokens):
    return {"dram_read": 4 * features * tokens + 8 * tokens, "dram_write": 4 * features * tokens}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda features, vocabulary, tokens: {"y": Spec((tokens, features), torch.float32)},
    reference=lambda weight, token: weight.T[token],
    time_at={"features": 4096, "vocabulary": 32000, "tokens": 16384},  # 256 MiB gathered of 500: four times the H200's L2 of 60 MB
    cpu_at={"features": 1024, "vocabulary": 16000, "tokens": 8192},  # 32 MiB gathered of 62
    check_at=(
        {"features": 1, "vocabulary": 2, "tokens": 1},
        {"features": 33, "vocabulary": 65, "tokens": 65},
        {"features": 128, "vocabulary": 500, "tokens": 77},
    ),
    work=work,
    constants=("weight",),  # weights do not change between calls, so prepare may repack them
    rtol=0.0,  # a copy is exact
    atol=0.0,
    ladder=("along_rows",),
)
