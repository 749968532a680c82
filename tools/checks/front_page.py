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
from common.python.pairs.goals import TIME
from common.python.report.run_folder import load
from common.python.report.terminal import print_results
from common.python.results import OPTIMIZED
from common.python.wording import at_shape, significant
from tools.checks.written_tables import NOT_MEASURED, rows

CHAPTERS = Path(__file__).with_name("chapters.tsv")
NOT_WRITTEN = "not written yet"
GAIN = 1.05
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
    """The table of all chapters and labs: linked where pairs are there, with the best of their accepted results.

    Where all of these are of one GPU model, the head says so once.
    """
    pairs = discover(root).pairs
    results: dict[Chapter, Best | str] = {}
    for chapter in read_chapters() if chapters is None else chapters:
        own = [pair for pair in pairs if pair.directory.partition("/")[0] == chapter.folder]
        results[chapter] = (best_of(own) or NOT_MEASURED) if own else NOT_WRITTEN
    gpus = {best.gpu for best in results.values() if isinstance(best, Best)}
    lines = []
    for chapter, best in results.items():
        link = chapter.name if best == NOT_WRITTEN else f"[{chapter.name}]({chapter.folder}/README.md)"
        cell = best if isinstance(best, str) else best.text(root.resolve()) + (f" ({best.gpu})" if len(gpus) > 1 else "")
        lines.append([link, chapter.learn, cell, chapter.needs])
    where = f" on {gpus.pop()}" if len(gpus) == 1 else ""
    return rows(("chapter", "you learn", f"best{where}: speedup, share of ceiling", "needs"), lines)


@dataclass(frozen=True)
class Best:
    """An accepted result: of which side at which shape on which GPU model, its speedup, and its share of the ceiling, if it has one."""

    share: float | None
    speedup: float
    name: str
    side: Path
    shape: str
    gpu: str

    def text(self, root: Path) -> str:
        """The result as a cell, its link from `root`."""
        link = f"[{self.name}]({os.path.relpath(self.side, root)})"
        share = "" if self.share is None else f", {100 * self.share:.0f} %"
        return f"{link}{at_shape(self.shape)} {significant(self.speedup)}x{share}"


def best_of(pairs: list[Pair]) -> Best | None:
    """The accepted result that came closest to the ceiling of its GPU: a large ratio may only mean a slow baseline.

    Of those that gained GAIN, where one did: at the ceiling a pair may have nothing to gain, which is no chapter's best. Of rows whose
    goal is time: of another goal, the speedup says nothing. A row without a ceiling comes behind those that have one.
    """
    found = []
    for pair in pairs:
        for path in sorted(pair.workload.parent.glob("expectations_*.json")):
            file = read_expectations(path)
            for shape, expected in file.pairs.get(pair.name, {}).items():
                if expected.goal == TIME:
                    share, speedup = expected.sides[OPTIMIZED].share, expected.speedup.estimate
                    gpu = key_text(file.gpu)
                    found.append(Best(share.share if share else None, speedup, pair.name, pair.sides[OPTIMIZED], shape, gpu))
    return max(found, key=lambda best: (best.speedup >= GAIN, -1 if best.share is None else best.share, best.speedup), default=None)


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
