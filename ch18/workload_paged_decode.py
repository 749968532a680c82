"""Decode attention of one layer over a paged cache: each of `sequences` has one query and a length of its own.

Pages have 16 tokens and lie in any order; the table says where. Heads and widths at the timed shape are those of Llama 3 8B.
Lengths are at least 1.
"""

from shared_paged_cache import inputs, outputs, reference, work

from common import Workload

WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    time_at={"sequences": 64, "shortest": 4096, "longest": 8192, "heads": 32, "kv_heads": 8, "dim": 128},
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=(
        {"sequences": 1, "shortest": 1, "longest": 1, "heads": 1, "kv_heads": 1, "dim": 64},
        {"sequences": 3, "shortest": 7, "longest": 33, "heads": 8, "kv_heads": 2, "dim": 64},  # a page with one token
        {"sequences": 2, "shortest": 17, "longest": 200, "heads": 16, "kv_heads": 2, "dim": 128},  # some tiles, the last of them short
        {"sequences": 2, "shortest": 17, "longest": 4097, "heads": 4, "kv_heads": 1, "dim": 64},
    ),
    constants=("table", "lengths"),
    work=work,
    rtol=0.01,  # shares and answers are rounded to bf16: 2^-9 each, and the mean of many
    atol=0.02,
)
