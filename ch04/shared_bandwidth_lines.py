"""What the bandwidth suite's picture and table have a line for, and the table: times by message size of several ways to communicate."""

ALL_REDUCES = ("all_reduce", "nccl_tests", "one_shot_all_reduce", "two_shot_all_reduce")
LINES = {
    "all_reduce": ("all-reduce, {backend}", "#0b62a4", "none"),
    "nccl_tests": ("all-reduce, {backend}, called by nccl-tests", "#777", "2 3"),
    "one_shot_all_reduce": ("all-reduce in one shot, symmetric memory", "#b5460f", "none"),
    "two_shot_all_reduce": ("all-reduce in two shots, symmetric memory", "#3d7d2f", "none"),
    "all_gather": ("all-gather, {backend}", "#0b62a4", "8 4"),
    "pushed_all_gather": ("all-gather pushed by {pusher}", "#7a3fa0", "8 4"),
}


def size_text(size):
    """Bytes in the largest binary unit that leaves a whole number."""
    unit = max((unit for unit in range(4) if size % 1024**unit == 0), default=0)
    return f"{size >> 10 * unit} {('B', 'KiB', 'MiB', 'GiB')[unit]}"


def where(found):
    """The ranks, the device and the software of a recording."""
    nccl = f", NCCL {found['nccl']}" if "nccl" in found else ""
    return f"{found['ranks']} ranks, {found['device']}; torch {found['torch']}{nccl}"


def lines_of(found, theirs):
    """The rows of each line that has any, by size; `theirs` is nccl-tests' busbw by size."""
    rows = [*found["rows"], *({"collective": "nccl_tests", "bytes": size, "busbw": busbw} for size, busbw in theirs.items())]
    lines = {name: {row["bytes"]: row for row in rows if row["collective"] == name} for name in LINES}
    return {name: of_size for name, of_size in lines.items() if of_size}


def told(name, found):
    """What a line is, in words."""
    return LINES[name][0].format(backend=found["backend"], pusher="copy engines" if found["backend"] == "NCCL" else "copies of the CPU")


def table_of(found, theirs=()):
    """Head and rows of a table of times in us by size, the shortest all-reduce of a size bold; nccl-tests' times are those of its busbw."""
    lines = lines_of(found, dict(theirs))
    factor = 2 * (found["ranks"] - 1) / found["ranks"]  # busbw over algbw of an all-reduce
    times = {
        name: {size: row["us"] if "us" in row else size * factor / row["busbw"] / 1e3 for size, row in of_size.items()}
        for name, of_size in lines.items()
    }
    rows = []
    for size in sorted({size for of_size in lines.values() for size in of_size}):
        best = min((times[name][size] for name in times if name in ALL_REDUCES and size in times[name]), default=0)
        cells = [times[name].get(size) for name in times]
        shown = ["" if time is None else f"{time:.1f}" if time < 1000 else f"{time:.0f}" for time in cells]
        is_best = [name in ALL_REDUCES and time == best for name, time in zip(times, cells, strict=True)]
        rows.append([size_text(size), *(f"**{text}**" if bold else text for text, bold in zip(shown, is_best, strict=True))])
    return ("µs", *(told(name, found) for name in lines)), rows
