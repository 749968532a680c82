"""A drawing of a training run's loss."""

WIDTH, HEIGHT = 1000, 300


def drawn(losses, bound):
    """Loss over steps as SVG, from 0 at the bottom, and a line at `bound`."""
    across, up = WIDTH / max(1, len(losses) - 1), HEIGHT / max(losses)
    points = " ".join(f"{step * across:.1f},{HEIGHT - loss * up:.1f}" for step, loss in enumerate(losses))
    y = HEIGHT - bound * up
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 -30 {WIDTH + 20} {HEIGHT + 40}" font-family="sans-serif">'
        f'<polyline points="{points}" fill="none" stroke="#369"/>'
        f'<line x1="0" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#a00"/>'
        f'<text x="{WIDTH}" y="-8" text-anchor="end">'
        f"{losses[0]:.2f} at step 1, {losses[-1]:.2f} at step {len(losses)}; {bound}</text>"
        "</svg>"
    )
