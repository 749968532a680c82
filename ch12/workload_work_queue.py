"""Walks on a graph whose successors fit in shared memory: task t moves 1024 walkers by steps[t] steps, 64 or, one task in 16, 1024.

Predicted: 1.3x. With a fixed share per block, the block with the most long tasks ends last; a queue hands them to whoever is free.

Measured: RESULTS.md.

Why: lengths are known only when they are read, so no partition made beforehand can balance them. The step `block_per_task` leaves
the tasks to the hardware's own queue of blocks, and loads the table for each.
"""

import torch

from common import Spec, Workload

STATES = 8192  # successors of 4 bytes: 32 KB of shared memory
WALKERS = 1024  # per task, one a thread
ONE_IN = 16  # tasks is long


def inputs(rand, tasks, short, long):
    order = rand.permutation(tasks)
    return {
        "successor": rand.permutation(STATES, dtype=torch.int32),
        "steps": torch.where(order % ONE_IN == 0, long, short).to(torch.int32),
    }


def reference(successor, steps, tasks, long):
    """Where each walker ends; it starts at its number, modulo STATES. Steps are made by powers of two, each with a table of its own."""
    table = successor.long()
    walkers = torch.arange(tasks * WALKERS, device=table.device).view(tasks, WALKERS) % STATES
    for bit in range(long.bit_length()):
        moves = (steps >> bit) & 1 == 1
        walkers[moves] = table[walkers[moves]]
        table = table[table]  # twice as many steps
    return walkers.to(torch.int32)


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda tasks, short, long: {"y": Spec((tasks, WALKERS), torch.int32)},
    reference=reference,
    time_at={"tasks": 1 << 14, "short": 64, "long": 1024},  # 124 tasks per SM, 8 of them long on average
    check_at=(
        {"tasks": 1, "short": 1, "long": 3},
        {"tasks": 7, "short": 2, "long": 5},
        {"tasks": 70, "short": 1, "long": 7},
    ),
    work=lambda tasks, short, long: {
        "shared": 4 * WALKERS * (short * (tasks - -(-tasks // ONE_IN)) + long * -(-tasks // ONE_IN)),
        "dram_read": 4 * tasks + 4 * STATES,
        "dram_write": 4 * tasks * WALKERS,
    },
    rtol=0.0,  # integers are exact
    atol=0.0,
    ladder=("block_per_task",),
)
