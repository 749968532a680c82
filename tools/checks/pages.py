"""Writes each chapter's tables, measured values and RESULTS.md, and the pages of predictions and repeated runs; or checks them."""

from __future__ import annotations

from pathlib import Path

from common.python.command import exit_with
from common.python.project import PROJECT_ROOT
from tools.campaign.repeats import read_repeats
from tools.checks import repeat_page
from tools.checks.load_pages import load_pictures
from tools.checks.measured_pairs import README, pairs_by_folder
from tools.checks.measured_values import filled
from tools.checks.prediction_page import PAGE, PICTURE, dots, prediction_page, prediction_picture
from tools.checks.results_pages import NAME, results_page
from tools.checks.short_tables import tables
from tools.checks.sweep_pages import sweep_pictures
from tools.checks.written_tables import read_readme, with_table, write_or_check


def rewritten(root: Path) -> dict[Path, str]:
    """What every generated page below `root` should say, by its path.

    Raises BenchmarkError, naming the file, for a README without markers, a marker of nothing that is known, a pair that predicts nothing,
    and a tree with a broken pair.
    """
    root = root.resolve()
    folders = pairs_by_folder(root)
    known = {measured.pair.target: measured for pairs in folders.values() for measured in pairs}
    found = {}
    for folder, pairs in folders.items():
        readme = folder / README
        text = read_readme(readme, "the README of a folder with pairs")
        found[readme] = with_table(readme, filled(readme, text, known), "table", tables(pairs, text, root))
        found[folder / NAME] = results_page(folder, pairs, root)
        found |= load_pictures(folder) | sweep_pictures(folder)
    for page in [root / README, *sorted((root / "common" / "docs").glob("*.md"))]:
        if page.is_file() and page not in found:
            found[page] = filled(page, page.read_text(encoding="utf-8"), known)
    if (root / PAGE.parent).is_dir():
        predicted = dots(known.values())
        found |= {root / PAGE: prediction_page(predicted, root), root / PICTURE: prediction_picture(predicted)}
        repeats = read_repeats(root)
        found |= {
            root / repeat_page.PAGE: repeat_page.repeat_page(repeats, root),
            root / repeat_page.PICTURE: repeat_page.repeat_picture(repeats),
        }
    return found


def main(arguments: list[str] | None = None, root: Path = PROJECT_ROOT) -> int:
    """Write the pages, or with `--check` say which differ; 1 if any does, or if one cannot be written."""
    return write_or_check(rewritten, root, "tools/checks/pages.py", arguments)


if __name__ == "__main__":
    exit_with(main)
