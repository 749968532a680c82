"""A page of a search's attempts: which came of which, what the harness said of each, and the best time by attempt, drawn."""

from html import escape

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
    """SVG: a dot for each accepted attempt, a cross for each other one, and a line for the best time so far."""
    times, bests = [1 / a.speedup if a.status == "PASSED" and a.speedup > 0 else 0 for a in attempts], [1.0, *best_by_attempt(attempts)]
    most, points = max([1.0, *times]), []
    parts = [f'<text x="{LEFT}" y="22">time over that of the start, of attempts 1 to {len(attempts)}; x: not accepted</text>']
    for number, best in enumerate(bests):
        x, (y, mark) = (
            LEFT + (WIDTH - LEFT - 20) * number / len(bests),
            (TOP + HEIGHT * (1 - t / most) for t in (best, ([1.0, *times])[number])),
        )
        points += [f"{x:.1f},{TOP + HEIGHT * (1 - bests[max(0, number - 1)] / most):.1f}", f"{x:.1f},{y:.1f}"]
        dot = f'<circle cx="{x:.1f}" cy="{mark:.1f}" r="4" fill="#369"/>'
        parts.append(dot if number == 0 or times[number - 1] else f'<text x="{x:.1f}" y="{mark:.1f}" fill="#a33">x</text>')
    labels = (f'<text x="10" y="{TOP + 5 + HEIGHT * (1 - t / most):.1f}">{t:.2f}</text>' for t in dict.fromkeys((0.0, bests[-1], 1.0)))
    line = f'<polyline points="{" ".join(points)}" fill="none" stroke="#369" stroke-width="2"/>'
    box = f'viewBox="0 0 {WIDTH} {TOP + HEIGHT + 20}" width="{WIDTH}" font-family="sans-serif" font-size="13"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{"".join([*parts, *labels, line])}</svg>'


def lineage(attempts):
    """The accepted attempts from the start to the best one, as numbers; 0 is the start."""
    by_number = {attempt.number: attempt for attempt in attempts}
    best = max((attempt for attempt in attempts if attempt.status == "PASSED"), key=lambda attempt: attempt.speedup, default=None)
    path = [best.number if best and best.speedup > 1 else 0]
    while path[-1]:
        path.append(by_number[path[-1]].parent)
    return path[::-1]


def page(target, attempts):
    """The whole page, as HTML that needs no other file."""
    path = lineage(attempts)
    rows = []
    for attempt in attempts:
        values = " ".join(f"{name}={value}" for name, value in attempt.constants.items())
        cells = (attempt.number, attempt.parent, values, attempt.status, f"{attempt.speedup:.3f}x", escape(attempt.reason))
        rows.append(f"<tr{' class=path' * (attempt.number in path)}><td>{'<td>'.join(map(str, cells))}")
    head = "".join(f"<th>{name}</th>" for name in ("attempt", "parent", "constants", "status", "speedup", "what was fed back"))
    style = "body{font-family:sans-serif;margin:2em}td,th{padding:2px 10px;text-align:left}.path{background:#def}"
    title = f"Attempts on {escape(target)}"
    text = f"<h1>{title}</h1><p>From the start to the best: {' → '.join(['start', *map(str, path[1:])])}.</p>{drawn(attempts)}"
    start = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{style}</style>'
    return f"{start}{text}<table><tr>{head}</tr>{''.join(rows)}</table></html>\n"
