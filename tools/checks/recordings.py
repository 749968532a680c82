"""What a chapter's README shows of a script that recorded figures without times: a picture and a table of each committed recording.

A recording is the JSON that the script wrote, beside it: loss_curves_h200.json. A file of the chapter tells and draws it by `table_of`.
"""

from __future__ import annotations

import json
from pathlib import Path

from common.python.errors import BenchmarkError
from tools.checks.written_tables import NOT_MEASURED, rows

SCRIPTS = {"loss_curves.py": "shared_loss_lines.py", "calibration_histograms.py": "shared_code_bars.py"}
"""By name the scripts of any chapter, and the file beside each that draws."""


def recordings(script: Path) -> tuple[str, dict[Path, str]]:
    """What the README says of all recordings beside `script`, and their pictures by path. Raises BenchmarkError, naming the file."""
    found, pictures = [], {}
    for recorded in sorted(script.parent.glob(f"{script.stem}_*.json")):
        picture = recorded.with_suffix(".svg")
        text, pictures[picture] = _told(recorded, script)
        found.append(text)
    return "\n\n".join(found) or f"{NOT_MEASURED[0].upper()}{NOT_MEASURED[1:]}.", pictures


def _told(recorded: Path, script: Path) -> tuple[str, str]:
    """A recording in words, and its picture."""
    from common.python.child.sides.loader import import_file  # it imports torch, for seconds

    drawing = import_file(script.with_name(SCRIPTS[script.name]))
    try:
        document = json.loads(recorded.read_text(encoding="utf-8"))
        words, svg, head, body = drawing.table_of(document)
        table = rows(tuple(head), body)
        where = _where(document)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise BenchmarkError(f"{recorded}: {type(error).__name__} {error}; expected what {script.name} writes") from error
    image = f"![{words}]({recorded.with_suffix('.svg').name})"
    return "\n\n".join([f"{words}, by [{script.name}]({script.name}):", image, table, f"Recorded on {where}."]), svg


def _where(document: dict[str, dict[str, str]]) -> str:
    origin = document["origin"]
    commit = f"commit {origin['commit'][:10] or 'unknown'}{' with changes' if origin['dirty'] else ''}"
    driver = [f"driver {origin['driver']}"] if origin["driver"] else []
    versions = [f"torch {origin['torch']}", f"Python {document['python']}"]
    return ", ".join([str(document["device"]), *driver, *versions, commit, origin["date"][:10]])
