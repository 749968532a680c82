"""Chapter 20's pairs as the stages of one job: their inputs, references and sides, with the stage's name before each name."""

import importlib.util
import sys
from pathlib import Path

CHAPTER = Path(__file__).parents[2] / "ch20"
HELPERS = ("shared_trainer", "shared_training_reference", "shared_stages", "shared_swiglu")  # in an order in which they find each other
STAGES = {
    "training": "training_single",
    "pipeline": "pipeline_sequential",
    "cache": "integrated_kv_cache",
    "stream": "end_to_end_bandwidth",
}


def module(name):
    """A module of chapter 20, from its file; it finds the chapter's helpers by their names."""
    path = CHAPTER / f"{name}.py"
    if getattr(sys.modules.get(name), "__file__", None) == str(path):
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def workloads():
    """Each stage's workload."""
    for helper in HELPERS:
        module(helper)
    return {stage: module(f"workload_{pair}").WORKLOAD for stage, pair in STAGES.items()}


def of(stage, named):
    """The stage's share of `named`, by the names that the stage has for it."""
    return {name.removeprefix(f"{stage}_"): value for name, value in named.items() if name.startswith(f"{stage}_")}


def asked(function, given):
    """Call `function` with what it asks for by name."""
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    return function(**{name: given[name] for name in names if name in given})


def merged(parts):
    """One dict of the stages' dicts, with the stage's name before each name."""
    return {f"{stage}_{name}": value for stage, part in parts.items() for name, value in part.items()}


def job(kind, given):
    """A step that runs all stages, one after the other, with chapter 20's sides of `kind`."""
    workloads()
    steps = [asked(module(f"{kind}_{pair}").prepare, of(stage, given)) for stage, pair in STAGES.items()]
    return lambda: tuple(step() for step in steps)
