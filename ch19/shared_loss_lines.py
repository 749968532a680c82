"""A drawing of the losses of several training runs."""

from html import escape

WIDTH, HEIGHT, LEFT, TOP = 900, 360, 60, 40
COLORS = ("#369", "#a33", "#383")


def table_of(found):
    """What losses.json says in the README: an introduction, the picture, and a table's head and rows."""
    settings, (tenth, last) = found["settings"], last_losses(found["losses"])
    told = f"{settings['steps']} steps of {settings['sequences']} texts of {settings['length']} bytes, seed {settings['seed']}"
    over = {name: f"{100 * (loss / last['bf16'] - 1):+.2f} %" for name, loss in last.items() if name != "bf16"}
    rows = [(name, f"{loss:.4f}", over.get(name, "")) for name, loss in last.items()]
    head = ("linear layers", f"nats per byte, mean of the last {tenth} steps", "over bf16")
    return f"Losses by step, {told}", drawn(found["losses"]), head, rows


def smoothed(losses, steps):
    """The mean of each loss and the `steps` - 1 before it."""
    return [sum(losses[max(0, at - steps + 1) : at + 1]) / min(at + 1, steps) for at in range(len(losses))]


def last_losses(curves):
    """The number of steps in a tenth, and by name the mean loss of the last of them."""
    tenth = max(min(map(len, curves.values())) // 10, 1)
    return tenth, {name: sum(losses[-tenth:]) / tenth for name, losses in curves.items()}


def drawn(curves):
    """SVG of nats a byte over steps: each run as it is, thin, and its mean over a twentieth of the steps, thick."""
    count = max(len(losses) for losses in curves.values())
    most, least = (extreme(extreme(losses) for losses in curves.values()) for extreme in (max, min))
    span = most - least or 1.0

    def points(losses):
        across = (WIDTH - LEFT - 20) / max(1, count - 1)
        return " ".join(f"{LEFT + at * across:.1f},{TOP + HEIGHT * (most - loss) / span:.1f}" for at, loss in enumerate(losses))

    parts = [f'<text x="{LEFT}" y="22" font-weight="bold">Loss in nats per byte over {count} steps</text>']
    for tick in range(5):
        y = TOP + HEIGHT * tick / 4
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 5:.1f}" text-anchor="end">{most - span * tick / 4:.2f}</text>')
    for number, (name, losses) in enumerate(curves.items()):
        color = COLORS[number % len(COLORS)]
        parts.append(f'<polyline points="{points(losses)}" fill="none" stroke="{color}" stroke-opacity="0.3"/>')
        mean = points(smoothed(losses, max(1, count // 20)))
        parts.append(f'<polyline points="{mean}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<text x="{LEFT + 200 * number}" y="{TOP + HEIGHT + 30}" fill="{color}">{escape(name)}</text>')
    box = f'viewBox="0 0 {WIDTH} {TOP + HEIGHT + 50}" font-family="sans-serif" font-size="14"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
