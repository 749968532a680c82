"""Histograms of the codes and scales that tensors use in several formats, as SVG."""

from html import escape

from shared_code_bins import HEAD, lines_of, shares

COLORS = {"weights": "#369", "activations": "#c72"}
WIDTH, HEIGHT, LEFT, TOP, GAP = 420, 120, 50, 64, 70  # pixels: of a panel, and what stands around it


def table_of(found):
    """What codes.json says in the README: an introduction, the picture, and a table's head and rows."""
    told = f"Codes and scales of byte_lm's linear layers, activations of {found['settings']['texts']} held-out texts"
    return told, drawn(found["counts"]), HEAD, lines_of(found["counts"])


def drawn(counts):
    """A row of two panels for each format: shares of codes, and of scales, by kind of values."""
    parts = ['<text x="8" y="20" font-weight="bold">Share of codes and of scales that are used, in %</text>']
    for number, (kind, color) in enumerate(COLORS.items()):
        parts.append(f'<rect x="{LEFT + 120 * number}" y="28" width="10" height="10" fill="{color}"/>')
        parts.append(f'<text x="{LEFT + 14 + 120 * number}" y="37">{kind}</text>')
    for row, (name, kinds) in enumerate(counts.items()):
        for column, of in enumerate(("codes", "scales")):
            bins = {kind: shares(found, of) for kind, found in kinds.items()}
            parts += panel(f"{name}: {of}", bins, LEFT + column * (WIDTH + LEFT), TOP + row * (HEIGHT + GAP))
    size = f"0 0 {LEFT + 2 * WIDTH + LEFT + 10} {TOP + len(counts) * (HEIGHT + GAP)}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" font-family="sans-serif" font-size="12" fill="#222">'
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"]) + "\n"


def panel(title, bins, left, top):
    """Bars of both kinds beside each other in every bin that one of them uses."""
    places = sorted({place for found in bins.values() for place in found})
    most, step = max(max(found.values()) for found in bins.values()), WIDTH / len(places)
    bottom = top + HEIGHT
    yield f'<text x="{left}" y="{top - 6}">{escape(title)}</text>'
    yield f'<text x="{left - 4}" y="{top + 9}" text-anchor="end">{100 * most:.3g}</text>'
    yield f'<text x="{left - 4}" y="{bottom}" text-anchor="end">0</text>'
    yield f'<path d="M{left} {top}V{bottom}h{WIDTH}" fill="none" stroke="#888"/>'
    for number, (kind, found) in enumerate(bins.items()):
        for place in found:
            x, high = left + step * (places.index(place) + 0.1 + 0.4 * number), HEIGHT * found[place] / most
            box = f'x="{x:.1f}" y="{bottom - high:.1f}" width="{0.4 * step:.1f}" height="{high:.1f}"'
            told = f"<title>{kind}, {escape(place[1])}: {100 * found[place]:.3f} %</title>"
            yield f'<rect {box} fill="{COLORS[kind]}">{told}</rect>'
    every = -(-len(places) // 12)  # names of this many bins would overlap
    for number, (_, name) in enumerate(places):
        if number % every == 0:
            yield f'<text x="{left + step * (number + 0.5):.1f}" y="{bottom + 16}" text-anchor="middle">{escape(name)}</text>'
