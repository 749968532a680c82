"""The page common/docs/repeated-runs.md: accepted rows that ran once more, as a picture of the changes and a list of those not the same."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from common.python.gate.expectations import key_text
from common.python.report.charts import Axis
from common.python.results import VerdictKind
from tools.campaign.repeats import Repeat, Repeats
from tools.checks.measured_pairs import README
from tools.checks.written_tables import rows

PAGE = Path("common/docs/repeated-runs.md")
PICTURE = PAGE.with_suffix(".svg")

_LEFT, _WIDTH, _RIGHT, _TOP, _LINE, _BELOW = 380, 460, 16, 40, 18, 44  # pixels
_FURTHEST = 50  # percent, at the edge of the picture
_COLOURS = {
    VerdictKind.SAME: "#0b62a4",
    VerdictKind.IMPROVED: "#3d7d2f",
    VerdictKind.INCONCLUSIVE: "#8a6d00",
    VerdictKind.REGRESSED: "#b5200f",
}

HEAD = """\
# Accepted rows, run again

Written by `tools/checks/pages.py` from `tools/campaign/repeats_*.json`.

A row is accepted once, from one run. Does another run say the same? \
`tools/campaign/again.py` draws rows at random and runs them again, mostly on another GPU of the same model. \
Nothing is accepted by it, and every row that ran is listed, whatever became of it.
A row that is not the same may run again, once the gate's rules or the code changed.

A timing is a row in one shape. The counts are of each timing's last run; the picture and the list have every run. \
A sentence is the gate's of that day. What the timing's last run said, if it is a later one, stands behind it.

SAME: the change lies within the band that counts as none. INCONCLUSIVE: the interval of the change crosses the band's edge, and the time \
was up. See [gating in CI](gating-in-ci.md)."""

PICTURE_TEXT = """\
![Changes in percent with intervals and bands]({picture})

A dot is the change of a row's figure against the accepted one, in percent; more is better. \
The line is its interval, the grey bar the band. What lies beyond the axis is at its edge."""


def repeat_page(files: Sequence[Repeats], root: Path) -> str:
    """The whole page; its links begin at its folder."""
    if not any(file.rows for file in files):
        return f"{HEAD}\n\nNone has run again yet.\n"
    counts = rows(("GPU", "runs", "timings", "same", "improved", "inconclusive", "regressed", "no verdict"), map(_counts, files))
    other = [
        [*_cells(file.gpu, each, root), _since(each, last)]
        for file in files
        for last in [_last_runs(file)]
        for each in file.rows
        if each.kind is not VerdictKind.SAME
    ]
    table = rows(("pair", "GPU", "day", "outcome", "what the gate said", "since then"), other)
    others = f"\n\n## Not the same\n\n{table}" if other else ""
    return f"{HEAD}\n\n{counts}\n\n{PICTURE_TEXT.format(picture=PICTURE.name)}{others}\n"


def _last_runs(file: Repeats) -> dict[tuple[str, str], Repeat]:
    """The last run of each timing: a pair in one shape."""
    return {(each.target, each.shape): each for each in sorted(file.rows, key=lambda own: own.origin.date)}


def _counts(file: Repeats) -> list[str]:
    kinds = Counter(each.kind for each in _last_runs(file).values())
    named = (VerdictKind.SAME, VerdictKind.IMPROVED, VerdictKind.INCONCLUSIVE, VerdictKind.REGRESSED)
    without = kinds.total() - sum(kinds[kind] for kind in named)
    return [key_text(file.gpu), str(len(file.rows)), str(kinds.total()), *(str(kinds[kind]) for kind in named), str(without)]


def _cells(gpu: str, each: Repeat, root: Path) -> list[str]:
    folder, _, pair = each.target.partition(":")
    link = os.path.relpath(root / folder / README, root / PAGE.parent)
    outcome = each.kind or each.status
    return [f"[{_name(each)}]({link}#{pair})", key_text(gpu), each.origin.date[:10], str(outcome), _short(each.said)]


def _since(each: Repeat, last: Mapping[tuple[str, str], Repeat]) -> str:
    """What the timing's last run said, if that began later."""
    then = last[each.target, each.shape]
    return "" if then.origin.date == each.origin.date else str(then.kind or then.status)


def _name(each: Repeat) -> str:
    return each.target if each.shape in ("", "default") else f"{each.target} @{each.shape}"


def _short(said: str) -> str:
    """Its first part, which has the change or the reason."""
    return said.partition("; ")[0]


def repeat_picture(files: Sequence[Repeats]) -> str:
    """The changes as an SVG, the worst at the top; a row without a change has its outcome in words."""
    found = sorted(((file.gpu, each) for file in files for each in file.rows), key=lambda own: (_change(own[1]), own[1].run))
    axis = Axis(-_FURTHEST, _FURTHEST, is_log=False)
    bottom = _TOP + _LINE * len(found)
    parts = [*_grid(axis, bottom)]
    for place, (gpu, each) in enumerate(found):
        parts += _row(axis, _TOP + _LINE * place + _LINE / 2, gpu, each)
    parts += _legend()
    width, height = _LEFT + _WIDTH + _RIGHT, bottom + _BELOW
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" fill="#222">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def _change(each: Repeat) -> float:
    return -float("inf") if each.percent is None else each.percent.estimate


def _row(axis: Axis, y: float, gpu: str, each: Repeat) -> Iterator[str]:
    name, told = escape(f"{_name(each)} {key_text(gpu)}"), escape(f"{each.origin.date[:10]}: {each.kind or each.status}: {each.said}")
    yield f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{name}<title>{told}</title></text>'
    if each.percent is None:
        yield f'<text x="{_LEFT + 8}" y="{y + 4}">{escape(str(each.kind or each.status))}</text>'
        return
    colour = _COLOURS.get(each.kind, "#5f5f5f") if each.kind else "#5f5f5f"
    if each.band_percent is not None:
        left, right = _x(axis, -each.band_percent), _x(axis, each.band_percent)
        yield f'<rect x="{left}" y="{y - 6}" width="{round(right - left, 1)}" height="12" fill="#e6e6e6"/>'
    low, high, middle = (_x(axis, value) for value in (each.percent.low, each.percent.high, each.percent.estimate))
    yield f'<path d="M{low} {y}H{high}" stroke="{colour}" stroke-width="2"/>'
    yield f'<circle cx="{middle}" cy="{y}" r="4" fill="{colour}"><title>{told}</title></circle>'


def _grid(axis: Axis, bottom: float) -> Iterator[str]:
    for percent in range(-_FURTHEST, _FURTHEST + 1, 10):
        x = _x(axis, percent)
        yield f'<path d="M{x} {_TOP}V{bottom}" stroke="{"#888" if percent == 0 else "#ddd"}" stroke-width="0.7"/>'
        yield f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{f"{percent:+d}" if percent else "0"}</text>'
    yield f'<text x="{_LEFT + _WIDTH / 2}" y="{bottom + 34}" text-anchor="middle">change in percent; more is better</text>'


def _legend() -> Iterator[str]:
    for place, (kind, colour) in enumerate(_COLOURS.items()):
        x = _LEFT + 118 * place
        yield f'<circle cx="{x + 4}" cy="20" r="4" fill="{colour}"/><text x="{x + 14}" y="24">{kind}</text>'


def _x(axis: Axis, value: float) -> float:
    return round(_LEFT + _WIDTH * axis.at(value) / 100, 1)
