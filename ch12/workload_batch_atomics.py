"""Stream compaction: the values below 8192 of an array of int32 become a dense list, in any order; then the list is summed.

Predicted: 14x on an H200. The compiler already merges a warp's atomics, so the baseline makes one for each warp that keeps a value.
All of them add to one counter, one per clock at best. One atomic per block of 4096 values leaves memory as the limit.

Measured: RESULTS.md.

Why: the order of the list is arbitrary, so it cannot be compared element by element. What is compared must not depend on the order:
the list's length, its sum and its sum of squares, which `tally` takes from the list itself. All three sides run that kernel.
A value missing, repeated or invented changes one of them.
"""
# traffic: nothing requires that the list reaches DRAM; what the L2 writes of it is beyond the least
# reason: all of the baseline's atomics add to one counter, which takes one per clock: a shared line, not memory, sets its time

import torch

from common import Spec, Workload

BELOW = 8192  # of values up to 65535: one in eight is kept


def reference(x):
    """Length, sum and sum of squares of the list: int32 and int64, exact."""
    kept = x[x < BELOW].long()
    count = torch.tensor([len(kept)], dtype=torch.int32, device=x.device)
    return count, torch.stack([kept.sum(), (kept * kept).sum()])


WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.integers(n, low=0, high=65536, dtype=torch.int32)},
    outputs=lambda n: {"count": Spec((1,), torch.int32), "sums": Spec((2,), torch.int64)},
    reference=reference,
    time_at={"n": 1 << 26},  # 256 MiB, and a list of 32 MiB
    check_at=({"n": 1}, {"n": 31}, {"n": 4096}, {"n": 4097}, {"n": 20_011}),
    work=lambda n: {"dram_read": 4 * n},  # x alone: the list is scratch, and its 32 MiB fit the L2
    rtol=0.0,  # integers are exact
    atol=0.0,
)
