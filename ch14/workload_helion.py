"""A matrix product: a handwritten Triton kernel, and the kernel that Helion generates from loops over tiles."""
# needs: tma, package helion
# instead: ch14:triton_persistent

from shared_matmul import workload

WORKLOAD = workload(
    check_at=(
        {"m": 1, "n": 8, "k": 8},  # one row, one chunk of 16 bytes
        {"m": 128, "n": 256, "k": 64},  # one whole tile, one K-step
        {"m": 129, "n": 264, "k": 72},  # four tiles, all but one nearly empty
        {"m": 257, "n": 520, "k": 200},
    )
)
