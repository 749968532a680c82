"""A trace of PyTorch's CUDA allocator: how much is in use behind each event, and which lines hold it at the peak."""

from collections import Counter

MOST_LINES = 5


def in_use(held, events):
    """Bytes in use behind each event, from `held` on, and at which event they are most."""
    sizes, now = [], held
    for event in events:
        now += {"alloc": event["size"], "free_requested": -event["size"]}.get(event["action"], 0)
        sizes.append(now)
    return sizes, max(range(len(sizes)), key=sizes.__getitem__)


def lines_at(events, peak):
    """The lines of Python that hold most of what was allocated and is in use behind event `peak`, with their bytes."""
    blocks = {}
    for event in events[: peak + 1]:
        if event["action"] == "alloc":
            blocks[event["addr"]] = event
        elif event["action"] == "free_requested":
            blocks.pop(event["addr"], None)
    held = Counter()
    for block in blocks.values():
        held[_line(block.get("frames", ()))] += block["size"]
    return held.most_common(MOST_LINES)


def _line(frames):
    """The innermost frame of a file of this chapter, else of any Python file."""
    python = [frame for frame in frames if frame["filename"].endswith(".py")]
    own = [frame for frame in python if "/ch13/" in frame["filename"]]
    frame = next(iter(own or python), None)
    return f"{frame['filename'].rpartition('/')[2]}:{frame['line']} {frame['name']}" if frame else "a library"
