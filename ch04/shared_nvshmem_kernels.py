"""Kernels that hand activations on through NVSHMEM. Counters are int64 in symmetric memory, and only grow.

Source: torch.distributed._symmetric_memory._nvshmem_triton. The numbers of operations are those of nvshmem_common_transport.h and
nvshmem_constants.h; the ones in the comments of PyTorch's module differ.
"""

import torch.distributed._symmetric_memory._nvshmem_triton as nvshmem
import triton
import triton.language as tl

SIGNAL_SET = tl.constexpr(9)
SIGNAL_ADD = tl.constexpr(10)
GREATER_OR_EQUAL = tl.constexpr(5)


@nvshmem.requires_nvshmem
@triton.jit(do_not_specialize=["calls", "share", "peer"])
def hand_off(inbox, y, arrived, taken, calls, share, peer):
    """Put `y` into the `inbox` of `peer`, `share` bytes a program, and count each share in the peer's `arrived`.

    Waits first until the peer has taken what was put `calls` calls before: then `taken`, which the peer sets here, has come to `calls`.
    """
    nvshmem.signal_wait_until(taken, GREATER_OR_EQUAL, calls)
    begin = tl.program_id(0).to(tl.int64) * share
    one = tl.full((), 1, tl.int64)
    nvshmem.putmem_signal_block(inbox.to(tl.int64) + begin, y.to(tl.int64) + begin, share, arrived, one, SIGNAL_ADD, peer)


@nvshmem.requires_nvshmem
@triton.jit(do_not_specialize=["count"])
def wait_for(arrived, count):
    """Wait until the rank before has put `count` shares; what it put is then seen by kernels behind this one."""
    nvshmem.signal_wait_until(arrived, GREATER_OR_EQUAL, count)


@nvshmem.requires_nvshmem
@triton.jit(do_not_specialize=["calls", "peer"])
def give_back(taken, calls, peer):
    """Tell `peer`, the rank before, that what it put in `calls` calls is used: the inbox may be overwritten."""
    nvshmem.signal_op(taken.to(tl.int64), calls.to(tl.int64), SIGNAL_SET, peer)
