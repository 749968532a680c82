"""A matrix product in Triton: the same kernel with a configuration that was guessed, and with the best of a search."""

from shared_matmul import workload

WORKLOAD = workload(
    check_at=(
        {"m": 1, "n": 8, "k": 8},  # one row, one chunk of 16 bytes
        {"m": 256, "n": 128, "k": 64},  # one whole tile, one K-step
        {"m": 257, "n": 136, "k": 72},  # a row, a chunk and a chunk more
        {"m": 65, "n": 264, "k": 200},
    )
)
