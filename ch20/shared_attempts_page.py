"""A page of a search's attempts: which came of which, what the harness said of each, and the best time by attempt, drawn."""

from html import escape

from shared_attempts_plot import drawn


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
