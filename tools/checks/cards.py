"""Writes the card of a GPU model from what `peak` measured, and the page of every card, or says which pages differ.

python tools/checks/cards.py FILE     the card of the GPU in FILE (artifacts/machines/<uuid>.json, or a run's run.json), and its page
python tools/checks/cards.py          the pages alone, common/docs/<model>.md
python tools/checks/cards.py --check  nothing is written; fail if a page differs from its card
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from common.python.command import Arguments, exit_with
from common.python.errors import BenchmarkError, ExitCode
from common.python.gate.predicted import card_from
from common.python.machine.ceilings import MachineCeilings
from common.python.pairs.predictions import CARDS, Card, Constant, is_model, read_card
from common.python.project import PROJECT_ROOT
from common.python.storage import write_whole

DOCS = PROJECT_ROOT / "common" / "docs"
PAGES = ("h100", "h200")
"""The models whose pages exist, measured or not."""

SMS = {"h100": 132, "h200": 132}
"""SMs of the SXM boards, from NVIDIA's data sheets: `peak` keeps no count."""

_SCALES = (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("K", 1e3))
_SECONDS = (("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))


def card_in(path: Path) -> Card:
    """The card of the GPU whose ceilings are in the file at `path`. Raises BenchmarkError for another file, and a GPU without a page."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        ceilings = content.get("ceilings") if isinstance(content, dict) else None
        document = ceilings.get("cuda") if isinstance(ceilings, dict) else content
        found = MachineCeilings.model_validate(document)
    except (OSError, ValueError, ValidationError) as error:
        first = str(error).splitlines()[0]
        raise BenchmarkError(f"{path}: {first}; expected what `peak` keeps, or a run.json with the ceilings of a GPU") from error
    model = next((page for page in PAGES if found.device == "cuda" and is_model(found.name, page)), "")
    if not model:
        raise BenchmarkError(f"{path}: found ceilings of {found.name}; expected those of one of {', '.join(PAGES)}")
    card = card_from(found)
    sms = Constant(SMS[model], "SMs", "chip fact", "streaming multiprocessors of the SXM board")
    return replace(card, model=model, measured=found.measured[:10], constants={**card.constants, "sm_count": sms})


def card_text(card: Card) -> str:
    """A card as its file holds it."""
    return json.dumps(asdict(card), indent=2, ensure_ascii=False) + "\n"


def page(model: str, folder: Path) -> str:
    """The page of one model, from its card in `folder`; it says so where there is none."""
    path = folder / f"{model}.json"
    title = f"# {model.upper()}: constants of predictions"
    if not path.is_file():
        lines = [
            title,
            "",
            f"Not measured yet. Run `benchmark_cli peak` on an {model.upper()}, and `tools/checks/cards.py FILE` with what it keeps.",
            "The second command writes the card and this page.",
            "Until then, a run takes the constants from the ceilings that `peak` kept on its own machine.",
        ]
        return "\n".join(lines) + "\n"
    card = read_card(path)
    lines = [
        title,
        "",
        "A `predicts:` line may name these constants. Its equation is evaluated with the card of the GPU model that a row was measured on.",
        "",
        f"Measured by `benchmark_cli peak` on one {card.gpu} with driver {card.driver}, {card.measured}: medians of short bursts.",
        "DRAM figures are with a clean L2, the state in which sides are timed. Chip facts come from the driver or a data sheet.",
        "Another GPU of the model differs by a few percent. Do not type these values into prose: name the constant.",
        "",
        *_table("measured", "Measured", card.constants),
        *_table("chip fact", "Chip facts", card.constants),
        "The latency of DRAM is not measured by `peak`: a line that needs it writes the number, and its source in the note.",
    ]
    return "\n".join(lines) + "\n"


def _table(kind: str, title: str, constants: Mapping[str, Constant]) -> list[str]:
    rows = [
        f"| `{name}` | {each_value} | {unit} | {constant.what} |"
        for name, constant in constants.items()
        if constant.kind == kind
        for each_value, unit in [scaled(constant)]
    ]
    return [f"## {title}", "", "| constant | value | unit | what it is |", "| --- | ---: | --- | --- |", *rows, ""]


def scaled(constant: Constant) -> tuple[str, str]:
    """Its value in a unit that suits its size, and that unit."""
    value, unit = constant.value, constant.unit
    if unit == "s":
        name, size = next(scale for scale in _SECONDS if value >= scale[1])
        return f"{value / size:.4g}", name
    if unit in ("bytes/s", "flop/s", "Hz"):
        prefix, size = next(scale for scale in _SCALES if value >= scale[1] and (scale[0] != "P" or unit == "flop/s"))
        return f"{value / size:.4g}", prefix + {"bytes/s": "B/s", "flop/s": "FLOP/s", "Hz": "Hz"}[unit]
    return f"{value:.0f}", unit


def differences(cards: Path, docs: Path) -> list[str]:
    """A sentence for each page that is missing or differs from its card, and each card without a page."""
    found = [
        f"{docs / name}.md differs from its card; expected what tools/checks/cards.py writes"
        for name in PAGES
        if not (docs / f"{name}.md").is_file() or (docs / f"{name}.md").read_text(encoding="utf-8") != page(name, cards)
    ]
    unknown = sorted(path for path in cards.glob("*.json") if path.stem not in PAGES)
    return found + [f"{path} is the card of no page; expected one of {', '.join(PAGES)}" for path in unknown]


def main(arguments: list[str] | None = None, cards: Path = CARDS, docs: Path = DOCS) -> int:
    """Write a card and the pages, or with `--check` say which differ; 1 if any does."""
    parser = Arguments(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("file", nargs="?", type=Path, help="what `peak` kept of a GPU, or a run.json with its ceilings")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page differs from its card")
    chosen: Any = parser.parse_args(arguments)
    try:
        if chosen.check:
            found = differences(cards, docs)
            print("\n".join(found) or f"{len(PAGES)} pages of GPU models are up to date")
            return ExitCode.USAGE if found else ExitCode.GOOD
        if chosen.file:
            card = card_in(chosen.file)
            write_whole(cards / f"{card.model}.json", card_text(card))
        for model in PAGES:
            write_whole(docs / f"{model}.md", page(model, cards))
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.USAGE
    return ExitCode.GOOD


if __name__ == "__main__":
    exit_with(main)
