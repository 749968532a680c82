"""The turns of workload_kv_offload.py, with longer messages: histories lie in pinned host memory, and what counts is time."""

import dataclasses

from workload_kv_offload import WORKLOAD as OFFLOAD

WORKLOAD = dataclasses.replace(
    OFFLOAD,
    # a group's 272 MB of blocks take as long to come as its 1024 tokens to compute
    time_at={"layers": 2, "width": 32, "conversations": 8, "context": 16384, "message": 512, "turns": 2, "group": 2, "block": 256},
    goal="time",
)
