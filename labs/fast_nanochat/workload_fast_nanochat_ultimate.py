"""A decode step of nanochat at batch 1, from eager PyTorch to all that the lab has: a ladder of what speeds it up."""
# predicts: baseline_fast_nanochat_fp8 = 0.611 x fast_nanochat_graph  (compiled: 14 kernels per layer instead of 31, 1.2 us each)
# baseline: labs/fast_nanochat/baseline_fast_nanochat.py
# reason: the baseline launches over 600 operators a step from the host, which takes longer than reading the weights

from shared_workload import decoding

WORKLOAD = decoding(
    rtol=0.02,
    atol=0.4,  # as in fast_nanochat_fp8, for all steps
    ladder=(
        "labs/fast_nanochat/optimized_fast_nanochat_graph.py",
        "labs/fast_nanochat/baseline_fast_nanochat_fp8.py",
        "labs/fast_nanochat/optimized_fast_nanochat_fp8.py",
    ),
)
