"""A decode step of nanochat at batch 1, compiled and captured: what is left is to read the weights."""

from shared_workload import decoding

from common import Precision

WORKLOAD = decoding(
    rtol=2**-6,  # as in fast_nanochat
    atol=0.1,
    changes=Precision(rtol=0.02, atol=0.4),  # e4m3 moves a product by some 4 % of its size, logits are of size 1
    ladder=("rows",),
)
