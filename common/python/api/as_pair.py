"""Functions that can be imported by name, written down as the files of a pair, so that they run as sides do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch

from common.python.api.functions import (
    Question,
    bound,
    described,
    found,
    has_mark,
    mark_of,
    name_of,
    named_inputs,
    only_inputs,
    own_name_of,
    search_path,
    specs_of,
)
from common.python.api.interpreted import interpreted_launches, may_interpret
from common.python.api.tried import require_callable_with, tried_inputs
from common.python.child.sides.loader import look_also_in
from common.python.errors import BenchmarkError
from common.python.machine.description import child_environment
from common.python.pairs.workload import Spec, Workload
from common.python.project import PROJECT_ROOT

FOLDER, PAIR = "ch01", "functions"
TARGET = f"{FOLDER}:{PAIR}"
_INPUTS_FILE = "inputs.pt"
_OUTPUTS_FILE = "outputs.json"
_WORKLOAD = '''"""The work of {functions}."""

from pathlib import Path

from common.python.api.as_pair import workload_in
from common.python.child.sides.loader import look_also_in

look_also_in({path!r})

WORKLOAD = workload_in(Path(__file__).parent)
'''
_SIDE = '''"""{name}."""

from pathlib import Path

from common.python.api.as_pair import prepared
from common.python.child.sides.loader import look_also_in

look_also_in({path!r})


def prepare(**given):
    return prepared({name!r}, given, Path(__file__).parent)
'''


@dataclass(frozen=True)
class Noted:
    """What a fresh process found: the inputs, in words, and which functions ran a Triton kernel in its interpreter."""

    inputs: Mapping[str, str]
    interpreted: tuple[str, ...]


class Replaced(BenchmarkError):
    """A module's attribute was set from elsewhere, so that another process finds another object there."""


def without_name(functions: Mapping[str, Callable[..., Any]], question: Question) -> list[str]:
    """What of a question another process cannot import: of functions, by what they are called, and of its own functions."""
    of_question = {"inputs": question.inputs, "reference": question.reference, "work": question.work}
    asked = {**of_question, **functions}
    return [name for name, each in asked.items() if isinstance(each, Workload) or (callable(each) and not name_of(each))]


def write_pair(root: Path, functions: Mapping[str, Callable[..., Any]], question: Question, *, device: str) -> Noted:
    """Write one or two functions, by what they are called, as a pair under `root`.

    What they are called with, and return, is found out in a process of its own, on `device`.

    Raises BenchmarkError if a function cannot be called with the inputs, Replaced if that process finds another in its place.
    """
    folder = root / FOLDER
    folder.mkdir(parents=True)
    names = [name_of(each) for each in functions.values()]
    asked = [*functions.values(), *(each for each in (question.inputs, question.reference, question.work) if callable(each))]
    path = [each for each in search_path() if each != str(folder)]
    stated = {each.name: getattr(question, each.name) for each in fields(question)}
    stated["functions"] = dict(zip(functions, names, strict=True))
    stated["marks"] = {name_of(each): mark_of(each) for each in asked if not own_name_of(each)}
    for key in ("inputs", "reference", "work"):
        stated[key] = {"name": name_of(stated[key])} if callable(stated[key]) else stated[key]
    if question.are_same_in_every_call:
        torch.save(named_inputs(question.inputs), folder / _INPUTS_FILE)
        stated["inputs"] = {"file": _INPUTS_FILE}
    (folder / "question.json").write_text(json.dumps(stated), encoding="utf-8")
    (folder / f"workload_{PAIR}.py").write_text(_WORKLOAD.format(functions=" and ".join(names), path=path), encoding="utf-8")
    for side, name in zip(("baseline", "optimized"), (names[0], names[-1]), strict=True):
        (folder / f"{side}_{PAIR}.py").write_text(_SIDE.format(name=name, path=path), encoding="utf-8")
    return _find_outputs(folder, path, device)


def _find_outputs(folder: Path, path: Sequence[str], device: str) -> Noted:
    """Have a fresh process call the first function once and note what it returns."""
    program = f"from common.python.api.as_pair import note_outputs; note_outputs({str(folder)!r}, {list(path)!r}, {device!r})"
    environment = child_environment(PROJECT_ROOT, device) | ({"TRITON_INTERPRET": "1"} if device == "cpu" else {})
    done = subprocess.run([sys.executable, "-P", "-c", program], env=environment, capture_output=True, text=True, check=False)
    if done.returncode and not (folder / _OUTPUTS_FILE).exists():  # what a later function raised is told when that is checked
        last = (done.stderr.strip().splitlines() or ["found no message"])[-1]
        if last.startswith(replaced := f"{Replaced.__module__}.{Replaced.__name__}: "):
            raise Replaced(last.removeprefix(replaced))
        sentence = last.removeprefix("common.python.errors.BenchmarkError: ")
        raise BenchmarkError(sentence if sentence != last else f"{_first(folder)[1]}: {last}")
    noted = json.loads((folder / _OUTPUTS_FILE).read_text(encoding="utf-8"))
    return Noted(noted["inputs"], tuple(noted["interpreted"]))


def note_outputs(folder: str, path: Sequence[str], device: str) -> None:
    """Call the first function of the pair in `folder`; write beside it what it was called with and returns, and who used an interpreter.

    The other is called too where Triton has its interpreter, once that is written.
    """
    look_also_in(path)
    stated = _read(Path(folder))
    if others := [name for name, mark in stated["marks"].items() if not has_mark(name, mark)]:
        raise Replaced(others[0])
    question = _question(Path(folder))
    functions = {name: found(place) for name, place in stated["functions"].items()}
    name, first = next(iter(functions.items()))
    require_callable_with(question.inputs, question.shape)
    workload = question.workload(first, {"out": Spec((1,), torch.float32)})
    inputs = tried_inputs(workload, workload.timed_shapes["default"], 1, torch.device(device), Path(folder))
    noted = described(inputs.values)
    steps = {each: bound(function, inputs.values, question.shape, each) for each, function in functions.items()}
    with interpreted_launches() as launches:
        specs = specs_of(steps[name](), name)
    outputs = {each: [list(spec.shape), str(spec.dtype).removeprefix("torch.")] for each, spec in specs.items()}
    interpreted = [name] if launches else []

    def write() -> None:
        text = json.dumps({"outputs": outputs, "inputs": noted, "interpreted": interpreted})
        (Path(folder) / _OUTPUTS_FILE).write_text(text, encoding="utf-8")

    write()
    for other in [each for each in steps if each != name and may_interpret()]:
        with interpreted_launches() as launches:
            steps[other]()
        interpreted += [other] if launches else []
        write()
    inputs.remove_files()


def workload_in(folder: Path) -> Workload:
    """The workload that `write_pair` wrote into `folder`."""
    question = _question(folder)
    known = json.loads((folder / _OUTPUTS_FILE).read_text(encoding="utf-8"))["outputs"]
    outputs = {name: Spec(tuple(shape), getattr(torch, dtype)) for name, (shape, dtype) in known.items()}
    return question.workload(found(_first(folder)[1]), outputs)


def prepared(name: str, given: Mapping[str, Any], folder: Path) -> Callable[[], Any]:
    """The step of the side that is the function `name`, on what `prepare` was given, of the pair in `folder`."""
    shape = _read(folder)["shape"]
    return bound(found(name), only_inputs(given, shape), shape)


def _read(folder: Path) -> dict[str, Any]:
    stated: dict[str, Any] = json.loads((folder / "question.json").read_text(encoding="utf-8"))
    return stated


def _first(folder: Path) -> tuple[str, str]:
    """The first function: what it is called, and where it is found."""
    called, place = next(iter(_read(folder)["functions"].items()))
    return called, place


def _question(folder: Path) -> Question:
    stated = _read(folder)
    del stated["functions"], stated["marks"]
    for key in ("reference", "work"):
        if isinstance(stated[key], dict) and "name" in stated[key]:
            stated[key] = found(stated[key]["name"])
    inputs = stated["inputs"]
    stated["inputs"] = found(inputs["name"]) if "name" in inputs else torch.load(folder / inputs["file"], map_location="cpu")
    return Question(**{**stated, "constants": tuple(stated["constants"]), "in_place": tuple(stated["in_place"])})
