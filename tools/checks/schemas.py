"""JSON Schema of every document that a run leaves or `--json` prints, published from the models: other tools read by contract."""

from __future__ import annotations

import json
from pathlib import Path

from common.python.command import Arguments, exit_with
from common.python.errors import ExitCode
from common.python.gate.expectations import Expectations
from common.python.gate.noise_floor import NoiseFloor
from common.python.machine.ceilings import MachineCeilings
from common.python.project import PROJECT_ROOT
from common.python.report.documents import PRINTED
from common.python.results import DOCUMENTS
from common.python.run.first_run import FirstRun
from common.python.storage import write_whole

PUBLISHED = DOCUMENTS | PRINTED
PUBLISHED |= {"expectations": Expectations, "first_run": FirstRun, "machine_ceilings": MachineCeilings, "noise_floor": NoiseFloor}
SCHEMAS = PROJECT_ROOT / "common" / "schemas"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema_texts() -> dict[str, str]:
    """The text of each schema by its file's name; a schema describes what is written, so every key is required."""
    return {
        f"{name}.schema.json": json.dumps({"$schema": _DIALECT, **document.model_json_schema(mode="serialization")}, indent=2) + "\n"
        for name, document in PUBLISHED.items()
    }


def differences(folder: Path) -> list[str]:
    """A sentence for each file in `folder` that is missing, stale or of no document."""
    expected = schema_texts()
    found = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.json")}
    missing = [f"{folder / name} is missing; expected the schema of a document" for name in sorted(expected.keys() - found.keys())]
    unknown = [
        f"{folder / name} is the schema of no document; expected one of {sorted(expected)}"
        for name in sorted(found.keys() - expected.keys())
    ]
    stale = [
        f"{folder / name} differs from its model in common/python; expected what tools/checks/schemas.py writes"
        for name in sorted(expected.keys() & found.keys())
        if expected[name] != found[name]
    ]
    return missing + unknown + stale


def main(arguments: list[str] | None = None, folder: Path = SCHEMAS) -> int:
    """Write the schemas, or with `--check` say which differ; 1 if any does."""
    parser = Arguments(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a published schema differs from its model")
    if not parser.parse_args(arguments).check:
        for name, text in schema_texts().items():
            write_whole(folder / name, text)
        return ExitCode.GOOD
    found = differences(folder)
    print("\n".join(found) or f"{len(PUBLISHED)} schemas are up to date")
    return ExitCode.USAGE if found else ExitCode.GOOD


if __name__ == "__main__":
    exit_with(main)
