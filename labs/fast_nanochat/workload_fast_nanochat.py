"""A decode step of nanochat at batch 1, logits included: the host needs longer to launch it than the GPU to run it."""

from shared_workload import decoding

WORKLOAD = decoding(
    bytes_a_weight=2,  # all sides store bf16
    rtol=2**-6,  # bfloat16 rounds what each operator writes, and 20 layers carry that on in the residual stream:
    atol=0.1,  # logits are of size 1
)
