"""The command line's flags: one a field of `Settings`, with its help, so that neither can be forgotten in the other."""

from __future__ import annotations

import inspect
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from common.python.errors import BenchmarkError
from common.python.pairs.discovery import resolved
from common.python.project import PROJECT_ROOT, program
from common.python.results import PairResult
from common.python.run.completion import target_names
from common.python.run.defaults import ROOT_HELP
from common.python.settings import Device, Profile, Settings


class Sanitizer(StrEnum):
    """compute-sanitizer's tools, in the order that they run in, and all of them."""

    MEMCHECK = "memcheck"
    RACECHECK = "racecheck"
    INITCHECK = "initcheck"
    SYNCCHECK = "synccheck"
    ALL = "all"


class FailOn(StrEnum):
    """What else than a failure may fail a run."""

    INCONCLUSIVE = "inconclusive"


_SELECTING = "What to run"
_MEASURING = "How to measure"
_PROFILING = "Profiling and proofs"
_GATING = "Gating"
_WRITING = "What is left behind"
_MOST = 1_000_000_000
"""Of calls, or of repeats: more are a slip of the finger, and days."""


def _option(*names: str, panel: str, text: str, **limits: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=False, **limits)


# field of Settings: (type, option, default)
_OPTIONS: dict[str, tuple[Any, Any, Any]] = {
    "targets": (
        list[str],
        _option(
            "--targets",
            "-t",
            panel=_SELECTING,
            text="ch07, ch07:transpose, ch07:transpose_baseline; repeatable. Default: everything.",
            autocompletion=target_names,
        ),
        [],
    ),
    "root": (Path | None, _option("--root", panel=_SELECTING, text=ROOT_HELP), None),
    "device": (
        Device,
        _option("--device", panel=_SELECTING, text="auto, cuda or cpu. Default: auto, the GPU where there is one."),
        Device.AUTO,
    ),
    "kwargs": (
        str,
        _option(
            "--kwargs",
            panel=_SELECTING,
            text='Shape entries to change at the timed shapes: "rows=1024 causal=true". Such rows are never gated.',
        ),
        "",
    ),
    "seed": (
        int | None,
        _option(
            "--seed",
            panel=_SELECTING,
            text="Makes the inputs: a failure tells the one that repeats it. Default: drawn.",
            min=0,
            max=(1 << 63) - 1,
        ),
        None,
    ),
    "ranks": (
        int | None,
        _option(
            "--ranks",
            panel=_SELECTING,
            text="Processes a side, of those that its workload can run in. Default: as many as there are GPUs for.",
            min=1,
            max=_MOST,
        ),
        None,
    ),
    "dry_run": (
        bool,
        _option("--dry-run", panel=_SELECTING, text="Read and try every selected file, print what would run, run nothing."),
        False,
    ),
    "emulate": (
        bool,
        _option(
            "--emulate",
            panel=_SELECTING,
            text="Without a GPU, check CUDA C++ sides in an emulation on the CPU, where it has what they use; needs g++.",
        ),
        False,
    ),
    "iterations": (
        int | None,
        _option(
            "--iterations",
            panel=_MEASURING,
            text="Time exactly N calls a side in each of 6 process pairs; no adaptive stop.",
            min=1,
            max=_MOST,
        ),
        None,
    ),
    "warmup": (
        int | None,
        _option(
            "--warmup",
            panel=_MEASURING,
            text="Exactly N calls before timing; 0 is legal. Default: until two blocks agree.",
            min=0,
            max=_MOST,
        ),
        None,
    ),
    "repeat": (
        int,
        _option(
            "--repeat",
            panel=_MEASURING,
            text="Repeat the whole measurement N times and report the spread between them too.",
            min=1,
            max=_MOST,
        ),
        1,
    ),
    "cold_start": (
        bool,
        _option("--cold-start", panel=_MEASURING, text="Every sample is a fresh process with cold compile caches, set-up included."),
        False,
    ),
    "sustained": (
        bool,
        _option("--sustained/--burst", panel=_MEASURING, text="A second or more back to back, or spaced samples. Default: burst."),
        False,
    ),
    "sweep": (
        str,
        _option("--sweep", panel=_MEASURING, text='A curve of one pair over a shape entry: "n=1024,2048,4096"; never gated.'),
        "",
    ),
    "against": (str | None, _option("--against", panel=_MEASURING, text="Git revision whose optimized side is the baseline."), None),
    "changed_since": (
        str | None,
        _option(
            "--changed-since",
            panel=_SELECTING,
            text="Of the targets, those whose files, or what they import or include, differ from this git revision; none: exit 0.",
        ),
        None,
    ),
    "timeout_multiplier": (
        float,
        _option(
            "--timeout-multiplier",
            panel=_MEASURING,
            text="Scales the limits: build 300 s, prepare 240, measure 120 a side, profile 180.",
            min=0.001,
            max=1_000_000,
        ),
        1.0,
    ),
    "suite_timeout": (
        float | None,
        _option("--suite-timeout", panel=_MEASURING, text="Seconds for the whole invocation.", min=0.001),
        None,
    ),
    "wait": (
        float,
        _option(
            "--wait", panel=_MEASURING, text="Seconds to wait for another run that has the machine. Default: 0, exit 6 at once.", min=0.0
        ),
        0.0,
    ),
    "profile": (
        Profile | None,
        _option(
            "--profile",
            panel=_PROFILING,
            text="none, minimal, roofline or deep_dive; bare: minimal. Default: minimal for a row that is red twice, none for others.",
        ),
        None,
    ),
    "ncu_metric_set": (
        Profile | None,
        _option("--ncu-metric-set", panel=_PROFILING, text="ncu's preset: minimal, roofline or deep_dive. Default: the profile's."),
        None,
    ),
    "sanitize": (
        list[Sanitizer],
        _option(
            "--sanitize",
            panel=_PROFILING,
            text="Run CUDA sides under compute-sanitizer's memcheck, racecheck, initcheck, synccheck, or all four; repeatable.",
        ),
        [],
    ),
    "llm_analysis": (
        bool,
        _option(
            "--llm-analysis",
            panel=_PROFILING,
            text="Send results and sources to the language model whose key is set; its answer is advice in the report, never a number.",
        ),
        False,
    ),
    "llm_dry_run": (
        bool,
        _option(
            "--llm-dry-run",
            panel=_PROFILING,
            text="Write what --llm-analysis would send, and tell about how many tokens it is; send nothing.",
        ),
        False,
    ),
    "llm_tokens": (
        int,
        _option(
            "--llm-tokens",
            panel=_PROFILING,
            text="Rows that would make what is sent longer, by an estimate, are left out. Default: 60000.",
            min=1,
            max=_MOST,
        ),
        60_000,
    ),
    "gate": (float, _option("--gate", panel=_GATING, text="Smallest change that counts, in percent. Default: 0.5.", min=0.0), 0.5),
    "accept_regressions": (
        bool,
        _option(
            "--accept",
            "--accept-regressions",
            panel=_GATING,
            text="Write what was measured into the expectations files: what is true today.",
        ),
        False,
    ),
    "require_expectations": (bool, _option("--require-expectations", panel=_GATING, text="Exit 5 if no row could be gated."), False),
    "fail_on": (FailOn | None, _option("--fail-on", panel=_GATING, text="inconclusive: exit 3 if a row's verdict is INCONCLUSIVE."), None),
    "artifacts_dir": (
        Path | None,
        _option(
            "--artifacts-dir",
            panel=_WRITING,
            text="This run's own folder, absent or empty unless --resume. Default: artifacts/<time> in the root, "
            "or in this project if the root lies in it.",
        ),
        None,
    ),
    "resume": (
        bool,
        _option(
            "--resume", panel=_WRITING, text="Go on with the run in --artifacts-dir: rows that are done, and values of a sweep, are kept."
        ),
        False,
    ),
    "json_output": (bool, _option("--json", panel=_WRITING, text="Print the result document and nothing else."), False),
    "verbose": (
        bool,
        _option("--verbose", "-v", panel=_WRITING, text="List every proof, skip and verdict; in a pipe, tell each step of a row."),
        False,
    ),
}

_FIRST_RUN: dict[str, tuple[Any, Any, Any]] = {
    **{field: _OPTIONS[field] for field in ("targets", "root", "device")},
    "dry_run": (
        bool,
        _option("--dry-run", panel=_SELECTING, text="Print the steps, and how long they took here before; measure and write nothing."),
        False,
    ),
    "minutes": (
        float | None,
        _option("--minutes", panel=_MEASURING, text="A limit: what there is no time for is TIMEOUT. Default: none.", min=0.01),
        None,
    ),
    "accept": _OPTIONS["accept_regressions"],
    "folder": (
        Path | None,
        _option("--artifacts-dir", panel=_WRITING, text="Its own folder. Default: artifacts/first_run_<time> in the root."),
        None,
    ),
    "resume": (
        bool,
        _option("--resume", panel=_WRITING, text="Go on with the first run in --artifacts-dir, or the newest: what is done is kept."),
        False,
    ),
}
_VERIFYING = (
    "targets",
    "root",
    "device",
    "kwargs",
    "seed",
    "ranks",
    "changed_since",
    "emulate",
    "dry_run",
    "timeout_multiplier",
    "suite_timeout",
    "sanitize",
    "artifacts_dir",
    "resume",
    "json_output",
    "verbose",
)
_RUNNING = tuple(field for field in _OPTIONS if field != "emulate")
_NOT_REPEATED = {"targets", "seed", "dry_run", "suite_timeout", "profile", "ncu_metric_set", "llm_analysis", "gate", "accept_regressions"}
_NOT_REPEATED |= {"llm_dry_run", "llm_tokens"}
_NOT_REPEATED |= {"require_expectations", "fail_on", "artifacts_dir", "resume", "json_output", "verbose", "wait", "changed_since"}
_NEVER_EXPECTED = ("kwargs", "sweep", "iterations", "cold_start", "sustained", "against")
"""Choices that measure another thing than the gate does, or in another way."""
_IN_TIMED_CALL = ", in a timed call: "


def command_of(name: str, run: Callable[[Settings], None], text: str) -> Callable[..., None]:
    """Make the function of the typer command `name`, with help `text`. Its parameters are the flags; it calls `run` with the settings."""
    fields = _RUNNING if name == "run" else _VERIFYING
    return _with_flags({field: _OPTIONS[field] for field in fields}, lambda choices: run(settings_of(name, choices)), text)


def first_run_command(run: Callable[[dict[str, Any]], None], text: str) -> Callable[..., None]:
    """Make the function of the typer command `first-run`; it calls `run` with the flags by name, `root` a folder that is there."""

    def command(choices: dict[str, Any]) -> None:
        root = resolved(choices["root"]) if choices["root"] else PROJECT_ROOT
        run(choices | {"root": root, "targets": tuple(choices["targets"])})

    return _with_flags(_FIRST_RUN, command, text)


def _with_flags(options: Mapping[str, tuple[Any, Any, Any]], run: Callable[[dict[str, Any]], None], text: str) -> Callable[..., None]:
    """A function that typer finds the flags `options` in, which it takes as one dict to `run`."""

    def command(**choices: Any) -> None:
        run(choices)

    command.__doc__ = text
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(field, inspect.Parameter.KEYWORD_ONLY, default=option[2], annotation=Annotated[option[:2]])
            for field, option in options.items()
        ]
    )
    return command


def repeat_command(settings: Settings, row: PairResult, seed: int) -> str:
    """The command line that repeats the failure of `row`: `verify`, or the run where its timing failed or `verify` has no such sides."""
    while_timed = _IN_TIMED_CALL in row.reason or "measure" in row.phases
    command = settings.command if while_timed or settings.against else "verify"
    usual = Settings()
    words = [command, "--targets", row.target, "--seed", str(seed)]
    for field in _RUNNING if command == "run" else _VERIFYING:
        value = getattr(settings, field)
        if field not in _NOT_REPEATED and value != getattr(usual, field):
            words += _spelt(f"--{field.replace('_', '-')}", value)
    return f"{program()} {shlex.join(words)}"


def _spelt(flag: str, value: Any) -> list[str]:
    """A flag as it is typed, once for each of several values."""
    if isinstance(value, bool):
        return [flag]
    if isinstance(value, dict):
        return [flag, " ".join(f"{key}={','.join(each) if isinstance(each, tuple) else each}" for key, each in value.items())]
    return [word for each in (value if isinstance(value, tuple) else (value,)) for word in (flag, str(each))]


def settings_of(command: str, choices: dict[str, Any]) -> Settings:
    """Settings from flags. Raises BenchmarkError for what cannot be read or meant: --kwargs, --sweep, NaN, a preset without a profile."""
    given = {field: value for field, value in choices.items() if value is not None}
    for field, value in given.items():
        if isinstance(value, float) and not math.isfinite(value):  # not every typer keeps NaN out by a limit
            raise BenchmarkError(f"--{field.replace('_', '-')} {value}: found no finite number; expected one")
    given["kwargs"] = parse_kwargs(choices["kwargs"])
    if "sweep" in given:
        given["sweep"] = parse_sweep(choices["sweep"])
    given["targets"] = tuple(choices["targets"])
    given["sanitize"] = _each_once(choices["sanitize"])
    if "root" in given:
        given["root"] = resolved(given["root"])
    settings = Settings(command=command, **given)
    if settings.ncu_metric_set is not None and not settings.profiles:
        raise BenchmarkError(f"--ncu-metric-set {settings.ncu_metric_set}: found no --profile; expected both, as it says what ncu counts")
    _refuse_both(settings)
    return settings


def _refuse_both(settings: Settings) -> None:
    """Raise BenchmarkError for two choices of which only one could be kept, and for one that needs another."""
    if settings.resume and settings.artifacts_dir is None:
        raise BenchmarkError("--resume: found no --artifacts-dir; expected the folder of the run to resume")
    if settings.accept_regressions and (other := next(filter(lambda field: getattr(settings, field), _NEVER_EXPECTED), "")):
        also = " ".join(_spelt(f"--{other.replace('_', '-')}", getattr(settings, other)))
        raise BenchmarkError(f"--accept {also}: found both; expected one, as only what is measured as usual can be expected")
    if settings.cold_start and settings.sustained:
        raise BenchmarkError("--cold-start --sustained: found both; expected one, as a fresh process a sample is never back to back")
    if both := settings.sweep.keys() & settings.kwargs.keys():
        key = min(both)
        told = f"--sweep {key}={','.join(settings.sweep[key])} --kwargs {key}={settings.kwargs[key]}"
        raise BenchmarkError(f"{told}: found {key} in both; expected it in one")


def _each_once(chosen: Sequence[Sanitizer]) -> tuple[str, ...]:
    """The tools that `chosen` names, in one order, so that a run can be resumed whichever order they are given in."""
    return tuple(each.value for each in Sanitizer if each is not Sanitizer.ALL and (each in chosen or Sanitizer.ALL in chosen))


def parse_kwargs(text: str) -> dict[str, str]:
    """`"rows=1024 causal=true"` as a dict. Raises BenchmarkError for anything that is not key=value, or a key given twice."""
    pairs: dict[str, str] = {}
    for word in text.split():
        key, equals, value = word.partition("=")
        if not (key.isidentifier() and equals and value) or key in pairs:
            raise BenchmarkError(f"--kwargs: found {word!r}; expected key=value pairs, each key once")
        pairs[key] = value
    return pairs


def parse_sweep(text: str) -> dict[str, tuple[str, ...]]:
    """`"n=1024,2048"` as a key and its values; nothing for no text. Raises BenchmarkError for anything else, or a value given twice."""
    key, equals, listed = text.partition("=")
    values = tuple(value.strip() for value in listed.split(","))
    if not text:
        return {}
    if not (key.isidentifier() and equals and all(values)) or len(set(values)) < len(values):
        raise BenchmarkError(f"--sweep: found {text!r}; expected a shape entry and different values of it, as in n=1024,2048,4096")
    return {key: values}
