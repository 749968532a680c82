"""A drawing of simulated fleets: the 95th percentile of TTFT over the number of GPUs, a line a pair and side."""

from html import escape

WIDTH, HEIGHT, LEFT, TOP = 760, 340, 70, 70
COLORS = {"routing_static": "#a33", "dynamic_routing": "#369"}
DASHES = {"baseline": "6 4", "optimized": "none"}


def drawn(rows, title):
    """SVG of rows as fleet_simulation.py makes them, with `title` above."""
    sizes = sorted({row["gpus"] for row in rows})
    most = max(row[side]["ttft_ms.p95"] for row in rows for side in DASHES)

    def place(gpus, value):
        across = sizes.index(gpus) / max(1, len(sizes) - 1)
        return f"{LEFT + 20 + across * (WIDTH - LEFT - 60):.1f},{TOP + HEIGHT * (1 - value / most):.1f}"

    parts = [f'<text x="{LEFT}" y="24" font-weight="bold">{escape(title)}</text>']
    parts += [f'<text x="{LEFT}" y="{TOP - 14}">TTFT, 95th percentile, in ms (simulated), over the number of GPUs</text>']
    for tick in range(5):
        y = TOP + HEIGHT * (1 - tick / 4)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 30}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 5:.1f}" text-anchor="end">{most * tick / 4:.0f}</text>')
    for gpus in sizes:
        parts.append(f'<text x="{place(gpus, 0).split(",")[0]}" y="{TOP + HEIGHT + 22}" text-anchor="middle">{gpus}</text>')
    lines = [(pair, side) for pair in dict.fromkeys(row["pair"] for row in rows) for side in DASHES]
    for number, (pair, side) in enumerate(lines):
        points = " ".join(place(row["gpus"], row[side]["ttft_ms.p95"]) for row in rows if row["pair"] == pair)
        style = f'fill="none" stroke="{COLORS[pair]}" stroke-width="2" stroke-dasharray="{DASHES[side]}"'
        parts.append(f'<polyline points="{points}" {style}/>')
        x, y = LEFT + 330 * (number % 2), TOP + HEIGHT + 50 + 22 * (number // 2)
        parts.append(f'<line x1="{x}" x2="{x + 40}" y1="{y - 5}" y2="{y - 5}" {style}/><text x="{x + 50}" y="{y}">{pair}, {side}</text>')
    box = f'viewBox="0 0 {WIDTH} {TOP + HEIGHT + 90}" font-family="sans-serif" font-size="14"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
