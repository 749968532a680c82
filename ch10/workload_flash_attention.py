"""Attention without a mask: y = softmax(q k^T / sqrt(dim)) v for every head, bf16 in and out.

Predicted: the baseline by its scores, which pass DRAM four times; the optimized sides by their flops.

Measured: RESULTS.md. The baseline takes more than twice as long as predicted; the optimized sides are near their predictions.

Why: the baseline moves as many bytes as predicted, 8.83 GB (dram__bytes.sum, H200). But its softmax kernel alone takes 3.31 ms
(gpu__time_duration.sum). It uses 27 % of DRAM's rate and 77 % of what the SMs can issue (sm__throughput): instructions are its limit, not
bytes. The two products take 0.68 ms and 0.54 ms.
"""

import math

import torch

from common import Precision, Spec, Workload


def inputs(rand, batch, heads, seq, dim):
    """Scores are of unit scale, so an output averages about seq / e values; v is scaled up so that outputs are of unit scale too."""
    scale = {"q": 1.0, "k": 1.0, "v": math.sqrt(seq / math.e)}
    return {name: rand.normal(batch, heads, seq, dim, dtype=torch.bfloat16, std=std) for name, std in scale.items()}


def reference(q, k, v, dim):
    """One head at a time: in float64 the scores of one head are 134 MB at the timed shape, those of all heads 8.6 GB."""
    heads = zip(*(tensor.flatten(0, 1) for tensor in (q, k, v)), strict=True)
    return torch.stack([torch.softmax(q @ k.T / math.sqrt(dim), dim=-1) @ v for q, k, v in heads]).view_as(q)


def work(batch, heads, seq, dim):
    """Two products of seq x seq x dim per head; q, k and v are read once, y is written once, scores stay on chip."""
    numbers = batch * heads * seq * dim
    return {"bf16": 4 * numbers * seq, "dram_read": 3 * 2 * numbers, "dram_write": 2 * numbers}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda batch, heads, seq, dim: {"y": Spec((batch, heads, seq, dim), torch.bfloat16)},
    reference=reference,
    time_at={"batch": 4, "heads": 16, "seq": 4096, "dim": 128},
    cpu_at=None,  # on a CPU without matrix instructions for bf16 the products dominate, so the pair would compare nothing
    check_at=(
        {"batch": 1, "heads": 1, "seq": 2, "dim": 64},
        {"batch": 2, "heads": 3, "seq": 33, "dim": 64},
        {"batch": 1, "heads": 2, "seq": 257, "dim": 128},  # a query and a key more than whole tiles
        {"batch": 1, "heads": 2, "seq": 1000, "dim": 80},  # a dim that is no power of two
    ),
    work=work,
    # The baseline rounds scores to bf16: a score between 4 and 8 by up to 2^-6, which is its probability's relative error. Beyond rtol the
    # worst of 6 million simulated outputs is off by 0.056; doubled.
    rtol=2.0**-6,
    atol=0.11,
    # Tighter, because scores stay in fp32: with only probabilities and outputs in bf16, the worst is 0.0083 beyond rtol; doubled.
    changes=Precision(rtol=2.0**-8, atol=0.0166),
    changed_by=("optimized",),  # the backend is left to PyTorch
)
