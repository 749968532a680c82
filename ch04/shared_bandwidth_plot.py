"""A drawing of bus bandwidth by message size, of several ways to communicate."""

from html import escape

WIDTH, HEIGHT, LEFT, TOP = 720, 360, 70, 60
LINES = {
    "all_reduce": ("all-reduce, {backend}", "#0b62a4", "none"),
    "one_shot_all_reduce": ("all-reduce in one shot, symmetric memory", "#b5460f", "none"),
    "two_shot_all_reduce": ("all-reduce in two shots, symmetric memory", "#3d7d2f", "none"),
    "all_gather": ("all-gather, {backend}", "#0b62a4", "6 4"),
    "pushed_all_gather": ("all-gather pushed by {pusher}", "#7a3fa0", "6 4"),
}


def size_text(size):
    """Bytes in the largest binary unit that leaves a whole number."""
    unit = max((unit for unit in range(4) if size % 1024**unit == 0), default=0)
    return f"{size >> 10 * unit} {('B', 'KiB', 'MiB', 'GiB')[unit]}"


def drawn(found):
    """SVG of the suite's figures, as its `--json` has them: medians, and the fastest and slowest round of each."""
    rows = [row for row in found["rows"] if row["collective"] in LINES]
    sizes = sorted({row["bytes"] for row in rows})
    most = max(row["busbw_max"] for row in rows)
    backend, pusher = found["backend"], "copy engines" if found["backend"] == "NCCL" else "copies of the CPU"

    def x_of(size):
        return round(LEFT + 20 + sizes.index(size) / max(1, len(sizes) - 1) * (WIDTH - LEFT - 60), 1)

    def y_of(busbw):
        return round(TOP + HEIGHT * (1 - busbw / most), 1)

    title = f"Bus bandwidth by message size: {found['ranks']} ranks, {escape(found['device'])}"
    parts = [f'<text x="{LEFT}" y="22" font-weight="bold">{title}</text>']
    parts.append(f'<text x="{LEFT}" y="44">GB/s, 1e9 bytes, as nccl-tests define it; bars from the slowest to the fastest round</text>')
    for tick in range(5):
        y = y_of(most * tick / 4)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 30}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 5}" text-anchor="end">{most * tick / 4:.3g}</text>')
    under = f'y="{TOP + HEIGHT + 22}" text-anchor="middle" font-size="11"'
    parts += [f'<text x="{x_of(size)}" {under}>{size_text(size)}</text>' for size in sizes]
    for number, (name, (words, color, dashes)) in enumerate(LINES.items()):
        own = [row for row in rows if row["collective"] == name]
        style = f'fill="none" stroke="{color}" stroke-width="2" stroke-dasharray="{dashes}"'
        points = " ".join(f"{x_of(row['bytes'])},{y_of(row['busbw'])}" for row in own)
        parts.append(f'<polyline points="{points}" {style}/>')
        for row in own:
            x = x_of(row["bytes"])
            parts.append(f'<path d="M{x} {y_of(row["busbw_min"])}V{y_of(row["busbw_max"])}" stroke="{color}"/>')
        y = TOP + HEIGHT + 52 + 22 * number
        told = words.format(backend=backend, pusher=pusher)
        parts.append(f'<line x1="{LEFT}" x2="{LEFT + 40}" y1="{y - 5}" y2="{y - 5}" {style}/><text x="{LEFT + 50}" y="{y}">{told}</text>')
    box = f'viewBox="0 0 {WIDTH} {TOP + HEIGHT + 60 + 22 * len(LINES)}" font-family="sans-serif" font-size="14"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
