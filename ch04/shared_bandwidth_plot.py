"""A drawing of bus bandwidth by message size, of several ways to communicate."""

import math
from html import escape

from shared_bandwidth_lines import LINES, lines_of, size_text, told, where

WIDTH, HEIGHT, LEFT, RIGHT, TOP = 760, 420, 64, 24, 84


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
