"""Memory over time by category: of a snapshot of PyTorch's CUDA allocator.

A snapshot is what `torch.cuda.memory._snapshot()` returns and `_dump_snapshot(path)` pickles, after `_record_memory_history()`.
"""

BEFORE, KEPT, FORWARD = "before the step", "kept after the step", "activations of forward"
AGAIN, BACKWARD = "recomputed in backward", "temporary in backward"
CATEGORIES = (BEFORE, KEPT, FORWARD, AGAIN, BACKWARD)  # from the bottom of the drawing up
RECOMPUTING = {"recompute_fn", "unpack_hook"}  # the functions of torch.utils.checkpoint that run in backward


def over_time(snapshot, device=0):
    """Bytes by category behind each event of the trace, and each event's milliseconds since the first, or its number without a clock."""
    events = [event for event in snapshot["device_traces"][device] if event["action"] in ("alloc", "free_requested")]
    if not events:
        raise ValueError(f"found no allocations in the trace of device {device}; expected a snapshot of a recorded step")
    kept = _kept(events)
    now = dict.fromkeys(CATEGORIES, 0) | {BEFORE: _at_the_end(snapshot, device) - sum(map(_change, events))}
    alive, states = {}, []
    for number, event in enumerate(events):
        if event["action"] == "alloc":
            alive[event["addr"]] = category = KEPT if number in kept else _category(event.get("frames", ()))
        else:
            category = alive.pop(event["addr"], BEFORE)
        now[category] += _change(event)
        states.append(dict(now))
    clocked = all("time_us" in event for event in events) and events[-1]["time_us"] > events[0]["time_us"]
    return states, [(event["time_us"] - events[0]["time_us"]) / 1e3 if clocked else number for number, event in enumerate(events)], clocked


def _change(event):
    return event["size"] if event["action"] == "alloc" else -event["size"]


def _kept(events):
    """The numbers of the allocations that no later event frees."""
    last = {}
    for number, event in enumerate(events):
        if event["action"] == "alloc":
            last[event["addr"]] = number
        else:
            last.pop(event["addr"], None)
    return set(last.values())


def _at_the_end(snapshot, device):
    """Bytes in use when the snapshot was taken, as asked for, which is what a trace counts."""
    blocks = [block for segment in snapshot["segments"] if segment.get("device", 0) == device for block in segment["blocks"]]
    return sum(block["requested_size"] for block in blocks if block["state"] == "active_allocated")


def _category(frames):
    """What an allocation is for, by who asked: the threads of autograd's engine have no Python but what computes again."""
    if RECOMPUTING & {frame["name"] for frame in frames}:
        return AGAIN
    in_engine = any("autograd::Engine" in frame["name"] for frame in frames)
    return FORWARD if any(frame["filename"].endswith(".py") for frame in frames) and not in_engine else BACKWARD
