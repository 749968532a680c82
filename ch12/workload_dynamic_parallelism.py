"""Breadth-first search from node 0 of a random graph with four edges per node: the distance of every node, -1 where there is no path.

Predicted: 1.7x. The size of each level's grid is known only when the level before is done; the baseline asks for it from the host.
A kernel that launches the next level itself saves the copy and the wait, some 15 times.

Measured: RESULTS.md.

Why: for as long as the size travels to the host and the launch travels back, the GPU idles. The step `fixed_grid` needs no size on
the host: it launches all levels that there may be, each with one grid, and kernels of empty levels return at once.
"""
# traffic: 256 KB of distances and 1 MB of edges stay in the L2

import torch

from common import Spec, Workload

EDGES = 4


def reference(edge, nodes):
    """Distances in edges, int32."""
    distance = torch.full((nodes,), -1, dtype=torch.int32, device=edge.device)
    frontier, level = torch.zeros(1, dtype=torch.int64, device=edge.device), 0
    while len(frontier):
        distance[frontier] = level
        found = edge[frontier].flatten().long().unique()
        frontier, level = found[distance[found] < 0], level + 1
    return distance


WORKLOAD = Workload(
    inputs=lambda rand, nodes: {"edge": rand.integers(nodes, EDGES, low=0, high=nodes, dtype=torch.int32)},
    outputs=lambda nodes: {"distance": Spec((nodes,), torch.int32)},
    reference=reference,
    time_at={"nodes": 1 << 16},  # 14 to 16 levels; a launch from the device may be nested 24 deep
    check_at=({"nodes": 1}, {"nodes": 40}, {"nodes": 1000}),
    work=lambda nodes: {"launch": 1, "dram_read": 4 * EDGES * nodes, "dram_write": 4 * nodes},
    rtol=0.0,  # integers are exact, in whatever order nodes are found
    atol=0.0,
    clock="launch",
    ladder=("fixed_grid",),
)
