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
    times = [1 / a.speedup if a.status == "PASSED" and a.speedup > 0 else None for a in attempts]
    most = max([1.0, *(time for time in times if time)])

    def place(number, time):
        return LEFT + (WIDTH - LEFT - 20) * number / max(1, len(attempts)), TOP + HEIGHT * (1 - time / most)

    parts = [f'<text x="{LEFT}" y="22">time over the start\'s, by attempt</text>']
    for tick in range(5):
        y = TOP + HEIGHT * (1 - tick / 4)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 5:.1f}" text-anchor="end">{most * tick / 4:.2f}</text>')
    points, before = [place(0, 1.0)], 1.0
    for number, (time, best) in enumerate(zip(times, best_by_attempt(attempts), strict=True), start=1):
        points += [place(number, before), place(number, best)]
        before = best
        x, y = place(number, time or 0)
        mark = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#369"/>'
        parts.append(mark if time else f'<text x="{x:.1f}" y="{y - 4:.1f}" fill="#a33" text-anchor="middle">x</text>')
    parts.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="none" stroke="#369" stroke-width="2"/>')
    box = f'viewBox="0 0 {WIDTH} {TOP + HEIGHT + 40}" width="{WIDTH}" font-family="sans-serif" font-size="13"'
    below = f'<text x="{LEFT}" y="{TOP + HEIGHT + 26}">attempts 1 to {len(attempts)}; x: not accepted, no time</text>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}>{"".join(parts)}{below}</svg>'


def lineage(attempts):
    """The accepted attempts from the start to the best one, as numbers; 0 is the start."""
    by_number = {attempt.number: attempt for attempt in attempts}
    accepted = [attempt for attempt in attempts if attempt.status == "PASSED" and attempt.speedup > 1]
    path = [max(accepted, key=lambda attempt: attempt.speedup).number] if accepted else [0]
    while path[-1]:
        path.append(by_number[path[-1]].parent)
    return path[::-1]


def page(target, attempts):
    """The whole page, as HTML that needs no other file."""
    path = lineage(attempts)
    rows = []
    for attempt in attempts:
        values = " ".join(f"{name}={value}" for name, value in attempt.constants.items())
        speedup = f"{attempt.speedup:.3f}x" if attempt.speedup else ""
        cells = [attempt.number, attempt.parent, values, attempt.status, speedup, attempt.reason]
        rows.append(f"<tr{' class=path' * (attempt.number in path)}>{''.join(f'<td>{escape(str(cell))}</td>' for cell in cells)}</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("attempt", "parent", "constants", "status", "speedup", "what was fed back"))
    style = "body{font-family:sans-serif;margin:2em}td,th{padding:2px 10px;text-align:left}.path{background:#def}"
    title = f"Attempts on {escape(target)}"
    come = " → ".join(["start", *map(str, path[1:])])
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{style}</style><h1>{title}</h1>'
        f"<p>From the start to the best: {come}.</p>{drawn(attempts)}<table><tr>{head}</tr>{''.join(rows)}</table></html>\n"
    )
