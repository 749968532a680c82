"""A plot of a search's attempts: the time of each, and the best so far."""

from math import ceil, floor, log2

WIDTH, HEIGHT, LEFT, TOP = 720, 260, 60, 40


def best_by_attempt(attempts):
    """The best time so far over the start's, after each attempt; only accepted attempts count."""
    best, times = 1.0, []
    for attempt in attempts:
        if attempt.status == "PASSED" and attempt.speedup > 0:
            best = min(best, 1 / attempt.speedup)
        times.append(best)
    return times


def drawn(attempts):
    """SVG: a dot for each accepted attempt, a cross for each other one, and a line for the best time so far; the scale doubles."""
    times, bests = [1 / a.speedup if a.status == "PASSED" and a.speedup > 0 else 0 for a in attempts], [1.0, *best_by_attempt(attempts)]
    shown = [1.0, *filter(None, times)]
    ticks = [2.0**power for power in range(floor(log2(min(shown))), max(1, ceil(log2(max(shown)))) + 1)]
    bottom = TOP + HEIGHT

    def height(time):
        return bottom - 20 - (HEIGHT - 20) * log2(time / ticks[0]) / log2(ticks[-1] / ticks[0])

    parts = [f'<text x="{LEFT}" y="22">time over that of the start, of attempts 1 to {len(attempts)}; x: not accepted</text>']
    for tick in ticks:
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{height(tick):.1f}" y2="{height(tick):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{height(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    points = []
    for number, (time, best) in enumerate(zip([1.0, *times], bests, strict=True)):
        x = LEFT + 10 + (WIDTH - LEFT - 40) * number / len(bests)
        points += [f"{x:.1f},{height(bests[max(0, number - 1)]):.1f}", f"{x:.1f},{height(best):.1f}"]
        dot = f'<circle cx="{x:.1f}" cy="{height(time):.1f}" r="4" fill="#369"/>' if time else ""
        parts.append(dot or f'<text x="{x:.1f}" y="{bottom}" fill="#a33">x</text>')
    line = f'<polyline points="{" ".join(points)}" fill="none" stroke="#369" stroke-width="2"/>'
    box = f'viewBox="0 0 {WIDTH} {bottom + 20}" width="{WIDTH}" font-family="sans-serif" font-size="13"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{"".join([*parts, line])}</svg>'
