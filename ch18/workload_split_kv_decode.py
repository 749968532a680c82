"""Decode attention of one layer for few requests with long contexts, over paged_decode's cache. Widths are those of Llama 3 8B.

Lengths are at least 1.
"""

from shared_paged_cache import inputs, outputs, reference, work

from common import Workload

WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    time_at={
        "four": {"sequences": 4, "shortest": 32768, "longest": 32768, "heads": 32, "kv_heads": 8, "dim": 128},
        "one": {"sequences": 1, "shortest": 65536, "longest": 65536, "heads": 32, "kv_heads": 8, "dim": 128},
    },
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=(
        {"sequences": 1, "shortest": 1, "longest": 1, "heads": 1, "kv_heads": 1, "dim": 64},
        {"sequences": 2, "shortest": 7, "longest": 300, "heads": 8, "kv_heads": 2, "dim": 64},  # one part, and ten
        {"sequences": 1, "shortest": 257, "longest": 257, "heads": 4, "kv_heads": 2, "dim": 128},
        {"sequences": 2, "shortest": 17, "longest": 4097, "heads": 4, "kv_heads": 1, "dim": 64},
    ),
    constants=("table", "lengths"),
    work=work,
    rtol=0.01,  # shares and answers are rounded to bf16: 2^-9 each, and the mean of many
    atol=0.02,
)
