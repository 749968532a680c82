"""A page of a search's attempts: which came of which, what the harness said of each, and the best time by attempt, drawn."""

from html import escape

from shared_attempts_plot import drawn

HEADS = ("attempt", "parent", "what was tried", "status", "speedup", "its time", "took", "tokens", "what was fed back")


def lineage(attempts):
    """The accepted attempts from the start to the best one, as numbers; 0 is the start."""
    by_number = {attempt.number: attempt for attempt in attempts}
    best = max((attempt for attempt in attempts if attempt.status == "PASSED"), key=lambda attempt: attempt.speedup, default=None)
    path = [best.number if best and best.speedup > 1 else 0]
    while path[-1]:
        path.append(by_number[path[-1]].parent)
    return path[::-1]


def page(target, attempts):
    """The whole page, as HTML that needs no other file; prompts and sources lie beside it."""
    path = lineage(attempts)
    rows = [f"<tr{' class=path' * (attempt.number in path)}><td>{'<td>'.join(cells(attempt))}" for attempt in attempts]
    head = "".join(f"<th>{name}</th>" for name in HEADS)
    style = "body{font-family:sans-serif;margin:2em}td,th{padding:2px 10px;text-align:left;white-space:nowrap}"
    style += "td:last-child{white-space:normal}.path{background:#def}"
    title = f"Attempts on {escape(target)}"
    text = f"<h1>{title}</h1><p>From the start to the best: {' → '.join(['start', *map(str, path[1:])])}.</p>{drawn(attempts)}"
    start = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{style}</style>'
    return f"{start}{text}<table><tr>{head}</tr>{''.join(rows)}</table></html>\n"


def cells(attempt):
    """An attempt's row; what it has not is empty."""
    files = {"prompt": attempt.prompt, "source": attempt.source}
    links = " ".join(f"<a href={escape(file)}>{name}</a>" for name, file in files.items() if file)
    values = " ".join(f"{name}={value}" for name, value in attempt.constants.items())
    speedup, time = (f"{attempt.speedup:.3f}x", f"{attempt.time_ns / 1000:.4g} µs") if attempt.status == "PASSED" else ("", "")
    judged = (attempt.status, speedup, time, f"{attempt.seconds} s", str(attempt.tokens or ""), escape(attempt.reason))
    return (str(attempt.number), str(attempt.parent), f"{values} {links}".strip(), *judged)
