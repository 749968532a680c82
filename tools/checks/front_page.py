"""What is generated of the front page: a row a chapter with its best measured result, and the table that a committed run printed."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from common.python.errors import BenchmarkError
from common.python.gate.expectations import key_text, read_expectations
from common.python.machine.description import Machine
from common.python.pairs.discovery import Pair, discover
from common.python.report.run_folder import load
from common.python.report.terminal import print_results
from common.python.results import OPTIMIZED
from common.python.wording import at_shape, significant
from tools.checks.written_tables import NOT_MEASURED, rows

CHAPTERS = Path(__file__).with_name("chapters.tsv")
COLUMNS = ("chapter", "you learn", "best: speedup, share of ceiling", "needs")
NOT_WRITTEN = "not written yet"
OUTPUT_WIDTH = 106
"""Characters: a code block of more has to be scrolled on a page of 950 pixels."""


@dataclass(frozen=True)
class Chapter:
    """A row of chapters.tsv: the chapter's folder, its title, what a reader learns, and what its examples need."""

    folder: str
    title: str
    learn: str
    needs: str

    @property
    def name(self) -> str:
        """Number and title, `7 Memory access`; of the labs the title alone."""
        number = self.folder.removeprefix("ch")
        return f"{int(number)} {self.title}" if number.isdigit() else self.title


def read_chapters(path: Path = CHAPTERS) -> list[Chapter]:
    """The chapters in reading order. Raises BenchmarkError, naming the line, for one that has not four cells."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        cells = line.split("\t")
        if line.startswith("#"):
            continue
        if len(cells) != 4 or not all(cells):
            raise BenchmarkError(f"{path.name}:{number}: found {len(cells)} cells; expected folder, title, what is learned, what is needed")
        found.append(Chapter(*cells))
    return found


def chapters_text(root: Path, chapters: list[Chapter] | None = None) -> str:
    """The table of all chapters and labs: linked where pairs are there, with the best of their accepted results."""
    pairs = discover(root).pairs
    lines = []
    for chapter in read_chapters() if chapters is None else chapters:
        own = [pair for pair in pairs if pair.directory.partition("/")[0] == chapter.folder]
        link = f"[{chapter.name}]({chapter.folder}/README.md)" if own else chapter.name
        lines.append([link, chapter.learn, best_text(own, root.resolve()) if own else NOT_WRITTEN, chapter.needs])
    return rows(COLUMNS, lines)


def best_text(pairs: list[Pair], root: Path) -> str:
    """The accepted result that came closest to the ceiling of its GPU: a large ratio may only mean a slow baseline."""
    best_share, best = 0.0, NOT_MEASURED
    for pair in pairs:
        for path in sorted(pair.workload.parent.glob("expectations_*.json")):
            file = read_expectations(path)
            for shape, expected in file.pairs.get(pair.name, {}).items():
                share = expected.sides[OPTIMIZED].share
                if share and share.share > best_share:
                    best_share = share.share
                    link = f"[{pair.name}]({os.path.relpath(pair.sides[OPTIMIZED], root)})"
                    gained = significant(expected.speedup.estimate)
                    best = f"{link}{at_shape(shape)} {gained}x, {100 * best_share:.0f} % ({key_text(file.gpu)})"
    return best


def output_text(run_folder: Path) -> str:
    """The table that the run in `run_folder` printed at its end, as a block, and where it comes from. Raises BenchmarkError."""
    run, found = load(run_folder)
    page = io.StringIO()
    print_results(found, run, Console(file=page, width=OUTPUT_WIDTH, highlight=False, markup=False, emoji=False, color_system=None))
    table = page.getvalue().split("\n\n")[1]
    gpu = Machine.model_validate(run.environment).gpus[0]
    seconds = [row.seconds for row in found]
    told = f"{gpu.name}, {run.started.partition('T')[0]}"
    source = f"[A run of {', '.join(run.settings['targets'])}](tools/pictures/{run_folder.name}), shortened: {told}."
    return "\n".join(
        [
            *("```text", *(line.rstrip() for line in table.splitlines()), "```", ""),
            f"{source} A row took {min(seconds):.0f} to {max(seconds):.0f} s.",
        ]
    )
