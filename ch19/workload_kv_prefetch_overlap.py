"""The turns of workload_kv_offload.py, with longer messages: histories lie in pinned host memory, and what counts is time."""

import dataclasses

from workload_kv_offload import WORKLOAD as OFFLOAD


def work(layers, width, conversations, context, message, turns, group, block):
    """Products, and each turn a conversation's keys and values over the link: the device keeps those of active ones alone."""
    products = OFFLOAD.work(layers, width, conversations, context, message, turns, group, block)
    token = 2 * 2 * layers * max(width // 4, 1) * 128  # bytes: a key and a value of each layer's heads
    return products | {"h2d": conversations * token * sum(context + turn * message for turn in range(turns))}


WORKLOAD = dataclasses.replace(
    OFFLOAD,
    # a group's 272 MB of blocks take as long to come as its 1024 tokens to compute
    time_at={"layers": 2, "width": 32, "conversations": 8, "context": 16384, "message": 512, "turns": 2, "group": 2, "block": 256},
    work=work,
    goal="time",
)
