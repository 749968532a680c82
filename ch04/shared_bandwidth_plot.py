"""A picture and a table of what the bandwidth suite found: bus bandwidth and time by message size, of several ways to communicate.

`./setup.sh python tools/checks/readme_tables.py` draws both of each bandwidth_*.json beside this file, and with `--check` compares them.
"""

import math
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP = 760, 420, 64, 24, 84
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


def drawn(found, theirs=()):
    """SVG of the suite's figures, as its `--json` has them, both axes logarithmic: medians, and the slowest and fastest round of each."""
    lines = lines_of(found, dict(theirs))
    rows = [row for of_size in lines.values() for row in of_size.values()]
    sizes = sorted({row["bytes"] for row in rows})
    low = min(row.get("busbw_min", row["busbw"]) for row in rows) / 1.2
    high = max(row.get("busbw_max", row["busbw"]) for row in rows) * 1.2
    right, bottom = WIDTH - RIGHT, TOP + HEIGHT

    def x_of(size):
        share = math.log(size / sizes[0]) / math.log(sizes[-1] / sizes[0]) if sizes[1:] else 0.5
        return round(LEFT + 20 + share * (right - LEFT - 40), 1)

    def y_of(busbw):
        return round(bottom - HEIGHT * math.log(busbw / low) / math.log(high / low), 1)

    parts = [f'<text x="{LEFT}" y="24" font-weight="bold">Bus bandwidth by message size</text>']
    parts.append(f'<text x="{LEFT}" y="46">{escape(where(found))}</text>')
    parts.append(f'<text x="{LEFT}" y="68" font-size="12">GB/s, 1e9 bytes, as nccl-tests define it; bars: slowest to fastest round</text>')
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high))):
        for digit in (1, 2, 5):
            tick = digit * 10.0**power
            if low <= tick <= high:
                y = y_of(tick)
                parts.append(f'<line x1="{LEFT}" x2="{right}" y1="{y}" y2="{y}" stroke="{"#bbb" if digit == 1 else "#e6e6e6"}"/>')
                parts.append(f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end" font-size="12">{tick:.10g}</text>')
    under = f'y="{bottom + 20}" text-anchor="middle" font-size="12"'
    parts += [f'<text x="{x_of(size)}" {under}>{size_text(size)}</text>' for size in sizes]
    for number, (name, of_size) in enumerate(lines.items()):
        _, color, dashes = LINES[name]
        style = f'fill="none" stroke="{color}" stroke-width="2" stroke-dasharray="{dashes}"'
        points = " ".join(f"{x_of(size)},{y_of(of_size[size]['busbw'])}" for size in sorted(of_size))
        parts.append(f'<polyline points="{points}" {style}/>')
        for size, row in of_size.items():
            if "busbw_min" in row:
                x = round(x_of(size) + 2 * (number - len(lines) / 2), 1)  # side by side, or one would hide another
                parts.append(f'<path d="M{x} {y_of(row["busbw_min"])}V{y_of(row["busbw_max"])}" stroke="{color}" stroke-opacity="0.6"/>')
        y = bottom + 50 + 22 * number
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + 40}" y1="{y - 5}" y2="{y - 5}" {style}/>')
        parts.append(f'<text x="{LEFT + 50}" y="{y}">{told(name, found)}</text>')
    box = f'viewBox="0 0 {WIDTH} {bottom + 50 + 22 * len(lines)}" font-family="sans-serif" font-size="14"'
    whole = "\n".join(['<rect width="100%" height="100%" fill="white"/>', *parts])
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>\n{whole}\n</svg>\n'


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
