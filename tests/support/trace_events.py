"""What Perfetto's importer of JSON traces would refuse or drop, by the rules of the Trace Event Format that it enforces.

Its source has them: trace_processor/importers/json, and slice_tracker.cc for what may overlap.
"""

from collections import defaultdict

INSTANTS, ASYNC, FLOWS = "iIR", "bne", "stf"
PHASES = {*"XBECMNOD", *INSTANTS, *ASYNC, *FLOWS}
NAMES = {"process_name", "thread_name"}


def refused(document):
    """A sentence for each event that would not be shown, in order; for one that partly overlaps another, behind all others."""
    events = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list) or not events:
        return ["found no list of events; expected traceEvents"]
    found = [f"event {number}: {reason}" for number, event in enumerate(events) for reason in _reasons(event)]
    return found or [*_unpaired(events), *_overlapping(events)]


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def _reasons(event):
    phase = event.get("ph")
    if phase not in PHASES:
        yield f"found the phase {phase!r}"
        return
    if phase != "M" and not (_is_number(event.get("ts")) and event["ts"] >= 0):
        yield f"found ts={event.get('ts')!r}; expected microseconds, as a number"
    if not all(type(event.get(name)) is int for name in ("pid", "tid")):
        yield f"found pid={event.get('pid')!r} and tid={event.get('tid')!r}; expected whole numbers, names in metadata"
    if phase == "X" and not (_is_number(event.get("dur")) and event["dur"] >= 0):
        yield f"found dur={event.get('dur')!r}; expected microseconds, as a number"
    if phase in FLOWS and not _is_identifier(event.get("id")):
        yield f"found the flow {event.get('id')!r}; expected a number, or one in hexadecimal"
    if phase in ASYNC and "id" not in event and not event.get("id2"):
        yield "found no id of something asynchronous"
    if phase == "M" and event.get("name") in NAMES and not event.get("args", {}).get("name"):
        yield "found metadata without args.name"
    if phase == "C" and not all(map(_is_number, event.get("args", {"": None}).values())):
        yield f"found the counter {event.get('args')!r}; expected numbers"


def _is_identifier(value):
    if isinstance(value, str):
        try:
            return int(value, 16) >= 0
        except ValueError:
            return False
    return type(value) is int


def _unpaired(events):
    depth = defaultdict(int)
    for event in events:
        if event["ph"] in "BE":
            depth[event["pid"], event["tid"]] += 1 if event["ph"] == "B" else -1
    return [f"thread {thread}: found {open_} more B than E" for thread, open_ in depth.items() if open_]


def _overlapping(events):
    threads = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            start = round(1e3 * event["ts"])  # the importer counts in whole ns
            threads[event["pid"], event["tid"]].append((start, -round(1e3 * event["dur"]), event["name"]))
    for thread, spans in threads.items():
        ends = []  # of those that are open, the innermost last
        for start, negative, name in sorted(spans):
            while ends and ends[-1] <= start:
                ends.pop()
            if ends and start - negative > ends[-1]:
                yield f"thread {thread}: {name} starts {ends[-1] - start} ns before another ends, and ends after it"
            else:
                ends.append(start - negative)
