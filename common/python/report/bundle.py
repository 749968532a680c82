"""What somebody sends home of a new machine: one .zip of documents, with nothing private in them, listed before it is written."""

from __future__ import annotations

import html
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from common.python.machine.description import Machine
from common.python.report.csv_table import csv_text
from common.python.report.documents import PRINTED
from common.python.report.html import html as html_page
from common.python.report.run_folder import JUNIT_FILE, METRICS_FILE, RUN_FILE, load
from common.python.report.tables import junit, markdown
from common.python.results import DOCUMENTS, Metrics
from common.python.settings import Settings
from common.python.storage import document_text, write_whole

_VISIBLE = re.compile(r"^(CUDA_VISIBLE_DEVICES)=.* leaves")


@dataclass(frozen=True)
class Bundle:
    """The texts to send, by file name, and how often a word stands in them for something private."""

    texts: Mapping[str, str]
    replaced: Mapping[str, int]

    def listing(self) -> Iterator[str]:
        """A line a file, then what was replaced: for whoever wants to know what they send, before there is anything to send."""
        for name, text in self.texts.items():
            yield f"{len(text.encode()):>12,} bytes  {name}"
        for word, count in self.replaced.items():
            yield f"{count:>12,} times  {word}, for what it names"

    def write(self, path: Path) -> None:
        """Write the .zip. Raises BenchmarkError, naming it."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in self.texts.items():
                archive.writestr(f"{path.stem}/{name}", text)
        write_whole(path, packed.getvalue())


def without_variables(machine: Mapping[str, Any]) -> dict[str, Any]:
    """A described machine without its environment variables: of the GPUs that CUDA may see, how many these are stays."""
    notes = [_VISIBLE.sub(r"\1 leaves", note) for note in machine.get("notes", ())]
    return {**machine, "variables": {}, "notes": notes}


def texts_of_run(folder: Path) -> dict[str, str]:
    """The documents and reports of the run in `folder`, written anew without environment variables. Raises BenchmarkError."""
    run, rows = load(folder)
    run = run.model_copy(update={"environment": without_variables(run.environment)})
    return {
        RUN_FILE: document_text(run),
        METRICS_FILE: document_text(Metrics(run_id=run.run_id, rows=rows)),
        JUNIT_FILE: junit(run, rows),
        "report.md": markdown(run, rows),
        "report.html": html_page(run, rows, folder),
        "results.csv": csv_text(rows),
    }


def bundle_of(texts: Mapping[str, str], paths: Mapping[str, str], names: Mapping[str, str]) -> Bundle:
    """`texts` with a word for each of the private `paths` and `names`, the first of them first.

    A path is one wherever it stands. A name is a whole word, and no word of the documents themselves: `root` or `cuda` tells of nobody.
    """
    patterns = [(_either(_spellings(path)), word) for path, word in paths.items()]
    telling = {name: word for name, word in names.items() if name.lower() not in _vocabulary()}
    patterns += [(rf"(?<![A-Za-z0-9])(?:{_either(_spellings(name))})(?![A-Za-z0-9])", word) for name, word in telling.items()]
    replaced: Counter[str] = Counter()
    found = {}
    for file, text in texts.items():
        for pattern, word in patterns:
            text, count = re.subn(pattern, word, text)  # noqa: PLW2901
            replaced[word] += count
        found[file] = text
    return Bundle(found, {word: count for word, count in replaced.items() if count})


def _either(spellings: Iterable[str]) -> str:
    return "|".join(re.escape(each) for each in spellings)


def _spellings(text: str) -> list[str]:
    """A text as it stands in Markdown, in JSON, in HTML and XML, and in a link."""
    spelt = (text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1], html.escape(text), quote(text))
    return sorted(set(spelt), key=len, reverse=True)


@cache
def _vocabulary() -> frozenset[str]:
    """The words that documents have of themselves: of their keys and of what these may hold."""
    kinds: list[type[BaseModel]] = [*DOCUMENTS.values(), *PRINTED.values(), Machine, Settings]
    schemas = [kind.model_json_schema() for kind in kinds]
    without_prose = re.sub(r'"description": "(?:[^"\\]|\\.)*"', "", json.dumps(schemas))
    return frozenset(re.findall(r"[a-z0-9]+", without_prose.lower()))
