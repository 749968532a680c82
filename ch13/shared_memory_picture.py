"""Memory over time by category, as a stacked drawing: of a snapshot of PyTorch's CUDA allocator."""

from shared_memory_categories import CATEGORIES, over_time

WIDTH, HEIGHT, COLUMNS = 900, 300, 450
COLOURS = dict(zip(CATEGORIES, ("#b8bec7", "#d98c5f", "#4f83b5", "#7db87d", "#c9b3dd"), strict=True))


def columns_of(states, times):
    """The state of each column of the drawing: the largest in its share of the time, or else the last before it."""
    count = min(COLUMNS, len(states))
    within = [[] for _ in range(count)]
    for state, time in zip(states, times, strict=True):
        within[min(count - 1, int(time / (times[-1] or 1) * count))].append(state)
    columns, last = [], states[0]
    for found in within:
        columns.append(max(found or [last], key=lambda state: sum(state.values())))
        last = found[-1] if found else last
    return columns


def picture(title, snapshot, device=0):
    """The SVG."""
    states, times, clocked = over_time(snapshot, device)
    totals = [sum(state.values()) for state in states]
    peak = max(range(len(totals)), key=totals.__getitem__)
    columns, up = columns_of(states, times), HEIGHT / max(totals)
    shapes, floor, step = [], [0] * len(columns), WIDTH / len(columns)
    for category in CATEGORIES:
        ceiling = [below + state[category] for below, state in zip(floor, columns, strict=True)]
        if ceiling != floor:
            shapes.append(f'<path d="{_outline(floor, ceiling, step, up)}" fill="{COLOURS[category]}"><title>{category}</title></path>')
        floor = ceiling
    legend = "".join(
        f'<rect x="{i * 180}" y="{HEIGHT + 34}" width="12" height="12" fill="{COLOURS[category]}"/>'
        f'<text x="{i * 180 + 17}" y="{HEIGHT + 45}">{category}</text>'
        for i, category in enumerate(CATEGORIES)
    )
    x, anchor = times[peak] / (times[-1] or 1) * WIDTH, "start" if 2 * times[peak] < times[-1] else "end"
    end = f"{times[-1]:.1f} ms" if clocked else f"{len(times)} events"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-60 -50 {WIDTH + 90} {HEIGHT + 110}" font-family="sans-serif" font-size="13">'
        f'<text x="0" y="-30" font-weight="bold">{title}</text>{"".join(shapes)}{_axis(max(totals), up)}'
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="-4" y2="{HEIGHT}" stroke="#a00"/>'
        f'<text x="{x:.1f}" y="-8" text-anchor="{anchor}" fill="#a00">peak {totals[peak] / 1e9:.2f} GB</text>'
        f'<text x="0" y="{HEIGHT + 18}">0</text><text x="{WIDTH}" y="{HEIGHT + 18}" text-anchor="end">{end}</text>{legend}</svg>\n'
    )


def _outline(floor, ceiling, step, up):
    """A band in stairs: along the ceiling to the right, along the floor back."""
    there = "".join(f"H{i * step:.1f}V{HEIGHT - size * up:.1f}H{(i + 1) * step:.1f}" for i, size in enumerate(ceiling))
    back = "".join(f"V{HEIGHT - size * up:.1f}H{i * step:.1f}" for i, size in reversed(list(enumerate(floor))))
    return f"M0,{HEIGHT - floor[0] * up:.1f}{there}{back}Z"


def _axis(most, up):
    """The bytes on the left, in quarters of the peak."""
    marks = [most * quarter / 4 for quarter in range(5)]
    return "".join(f'<text x="-6" y="{HEIGHT - mark * up + 4:.1f}" text-anchor="end">{mark / 1e9:.2f} GB</text>' for mark in marks)
