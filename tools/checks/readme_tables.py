"""Writes what is generated of READMEs and docs, or says what differs.

The front page's; of bars, adversaries, compiled sides, traced roles and ping-pongs, bandwidths, searches, recordings, simulated fleets, and
engines beside others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from common.python.command import exit_with
from common.python.machine.needs import PACKAGE
from common.python.pairs.claims import techniques
from common.python.pairs.directives import read_directives
from common.python.pairs.discovery import discover
from common.python.project import PROJECT_ROOT
from common.python.report.role_trace import RoleTrace, lines, read_role_trace, sentences
from common.python.run.first_run import newer_than_measured
from common.python.session.planning import claims_of
from tools.checks import adversaries, beside_engines, compiled_sides, fleets, front_page
from tools.checks.bandwidths import MARKER, SUITES, bandwidths
from tools.checks.pingpong import DEMOS, pingpong
from tools.checks.recordings import SCRIPTS as RECORDERS
from tools.checks.recordings import recordings
from tools.checks.searches import MARKER as SEARCHES
from tools.checks.searches import SCRIPTS, searches
from tools.checks.written_tables import NOT_MEASURED, read_readme, rows, with_table, write_or_check
from tools.noise.bar_figures import by_conditions, read_bars, table

BARS = Path("tools", "noise")
CHEATS = Path("tests", "adversaries")
BLACKWELL = (10, 0)
DOCS = Path("common", "docs")
EXAMPLE_RUN = Path("tools", "pictures", "run_h200")
TEMPLATES = PROJECT_ROOT / "common" / "python" / "pairs" / "templates"
README = "README.md"
ROLES = ("busy", "of a block's time", "of a block's time, and who multiplies waits for a stage")


def bars_text(folder: Path) -> str:
    """What the README says of the bars: a table for each model and its conditions, from all files `bars_*.json` in `folder`."""
    files = [read_bars(path) for path in sorted(folder.glob("bars_*.json"))]
    return "\n\n".join(map(table, by_conditions(files))) or f"{NOT_MEASURED[0].upper()}{NOT_MEASURED[1:]}."


def example_text(templates: Path = TEMPLATES) -> str:
    """What `new` writes: the workload and both sides in Python, then both sides in CUDA C++."""
    blocks = []
    for name in ("workload.py", "baseline.py", "optimized.py", "baseline.cu", "optimized.cu"):
        role, _, suffix = name.partition(".")
        language = "python" if suffix == "py" else "cuda"
        text = (templates / name).read_text(encoding="utf-8").rstrip()
        blocks.append(f"`{role}_row_sum.{suffix}`:\n\n```{language}\n{text}\n```")
    return "\n\n".join(blocks)


def techniques_text() -> str:
    """The techniques that a claim may name, a row for each set of architectures that have them."""
    names: dict[tuple[str, ...], list[str]] = {}
    for name, technique in techniques().items():
        names.setdefault(technique.architectures, []).append(f"`{name}`")
    lines = [[", ".join(f"sm_{each}" for each in where), ", ".join(found)] for where, found in names.items()]
    return rows(("exists on", "techniques"), lines)


def blackwell_text(root: Path) -> str:
    """The pairs that wait for the first Blackwell GPU: what each changes, what it needs, and how many claims its files make."""
    found = []
    for each in newer_than_measured(discover(root), BLACKWELL):
        claims = claims_of(each.pair, {side: read_directives(path) for side, path in each.pair.sides.items()})
        needs = ", ".join(need for need in each.needs if not need.startswith(PACKAGE))
        found.append((f"`{each.pair.target}`", each.idea.rstrip("."), needs, str(sum(map(len, claims.values())))))
    return rows(("pair", "what changes", "needs", "claims"), found)


def roles_text(demo: Path) -> str:
    """What the README of a chapter says of its traced demo, from all files `<demo>_*.json` beside it."""
    found = [_of_trace(read_role_trace(path)) for path in sorted(demo.parent.glob(f"{demo.stem}_*.json"))]
    head = f"When roles were busy, by [{demo.name}]({demo.name})"
    return "\n\n".join(f"{head}, {text}" for text in found) or f"{head}: {NOT_MEASURED}."


def _of_trace(trace: RoleTrace) -> str:
    return "\n\n".join([f"{trace.where}:", rows(ROLES, lines(trace)), " ".join(sentences(trace))])


def rewritten(root: Path) -> dict[Path, str]:
    """What the READMEs below `root` should say, by path. Raises BenchmarkError, naming the file that is not what it should be."""
    texts = {
        Path(README): {"output": front_page.output_text(root / EXAMPLE_RUN), "chapters": front_page.chapters_text(root)},
        BARS / README: {"bars": bars_text(root / BARS)},
        CHEATS / README: {"adversaries": adversaries.text(root / CHEATS)},
        compiled_sides.FOLDER / README: {"compiled": compiled_sides.text(root / compiled_sides.FOLDER)},
        DOCS / "writing-a-pair.md": {"example": example_text()},
        DOCS / "proving.md": {"techniques": techniques_text()},
        DOCS / "first-hour-on-blackwell.md": {"blackwell": blackwell_text(root)},
    }
    found = {}
    for place, tables in texts.items():
        page = root / place
        whole = read_readme(page, "a page with generated tables")
        for name, text in tables.items():
            whole = with_table(page, whole, name, text)
        found[page] = whole
    for source, whose, name, (text, pictures) in _committed(root):
        readme = source.with_name(README)
        whole = found.get(readme) or read_readme(readme, f"the README of a chapter with {whose}")
        found |= {readme: with_table(readme, whole, name, text), **pictures}
    return found


def _committed(root: Path) -> Iterator[tuple[Path, str, str, tuple[str, Mapping[Path, str]]]]:
    """What chapters' READMEs show of documents that are committed beside a file: that file, what it is, the marker, text and pictures."""
    for demo in sorted(root.glob("ch*/*_overlap_trace.cu")):
        yield demo, "a traced demo", demo.stem, (roles_text(demo), {})
    for demo in sorted(root.glob(DEMOS)):
        yield demo, "a traced demo", demo.stem, pingpong(demo)
    for suite in sorted(root.glob(SUITES)):
        yield suite, "a bandwidth suite", MARKER, bandwidths(suite)
    for script in sorted(root.glob(SCRIPTS)):
        yield script, "a search for kernels", SEARCHES, (searches(script), {})
    for script in sorted(path for name in RECORDERS for path in root.glob(f"ch*/{name}")):
        yield script, "a script that records", script.stem, recordings(script)
    for script in sorted(root.glob(fleets.SCRIPTS)):
        yield script, "simulated fleets", fleets.MARKER, (fleets.fleets(script), {})
    for script in sorted(root.glob(beside_engines.SCRIPTS)):
        yield script, "an engine beside another's", beside_engines.MARKER, (beside_engines.beside(script), {})


def main(arguments: list[str] | None = None, root: Path = PROJECT_ROOT) -> int:
    """Write the tables, or with `--check` say which READMEs differ; 1 if any does, or if one cannot be written."""
    return write_or_check(rewritten, root, "tools/checks/readme_tables.py", arguments)


if __name__ == "__main__":
    exit_with(main)
