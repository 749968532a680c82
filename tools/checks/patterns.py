"""The house rules that a regular expression can see, as data: what may not stand in which files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tools.checks.source import Finding, Source


@dataclass(frozen=True)
class Pattern:
    """Text that may not stand in the files that it applies to; comments and docstrings count only `in_comments`."""

    rule: str
    applies: Callable[[Source], bool]
    forbidden: re.Pattern[str]
    expected: str
    in_comments: bool = False


def _any(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives))


def _anywhere(_: Source) -> bool:
    return True


def _example(source: Source) -> bool:
    return source.is_example


def _baseline(source: Source) -> bool:
    return source.is_example and source.name.startswith("baseline_")


def _baseline_that_does_not_allow(what: str) -> Callable[[Source], bool]:
    allowed = re.compile(rf"^\s*(//|#) allows:.*\b{what}\b", re.MULTILINE)
    return lambda source: _baseline(source) and not allowed.search(source.text)


def _ours_but_environment(source: Source) -> bool:
    return source.is_ours and source.path != "common/python/machine/description.py"


def _python_but_loader(source: Source) -> bool:
    return source.is_python and source.path != "common/python/child/sides/loader.py"


def _scope(technique: str, first: int, forbidden: re.Pattern[str], but: tuple[int, ...] = (), measuring: tuple[int, ...] = ()) -> Pattern:
    """`technique` belongs to chapter `first` and to those after it, to the chapters `but`, and to scripts, not examples, of `measuring`.

    A library's side may use any: it teaches nothing, and is compared with at its best.
    """

    def applies(source: Source) -> bool:
        is_code = source.is_python or source.is_cuda
        is_early = source.chapter is not None and source.chapter < first and source.chapter not in but
        is_library = source.is_example and source.name.startswith("library_")
        return is_code and is_early and not is_library and (source.is_example or source.chapter not in measuring)

    return Pattern("chapter scope", applies, forbidden, f"a technique that is due by this chapter; {technique}: ch{first:02}")


_HONEST = "an honest baseline, slow only for what its optimized side changes"

PATTERNS = (
    Pattern(
        "no harness",
        _example,
        _any(
            *(r"__main__", r"\bint\s+main\s*\(", r"\b(argparse|typer|click)\b", r"\bsys\.argv\b"),
            *(r"\btime\.(perf_counter|monotonic|process_time|time)(_ns)?\b", r"\btimeit\b", r"\bstd::chrono\b", r"\bdo_bench\b"),
            # Events that order work carry no time: torch.cuda.Event(), cudaEventCreateWithFlags(..., cudaEventDisableTiming).
            *(r"\bcudaEventElapsedTime\b", r"\bcudaEventCreate\s*\(", r"\benable_timing\s*=\s*True\b", r"\.elapsed_time\("),
            *(r"\btorch\.utils\.benchmark\b", r"\bmanual_seed", r"\brandom\.seed\b"),
            *(r"\b(torch|np|numpy)\.(allclose|equal|array_equal)\(", r"\bassert_(close|allclose)\b", r"\btorch\.testing\b"),
        ),
        "an example without main, timing, seed, check or argparse",
    ),
    Pattern(
        "honest baseline",
        _baseline,
        _any(r"(?<!asm )\bvolatile\b", r"\btime\.sleep\b", r"\bu?sleep\s*\(", r"nanosleep"),
        _HONEST,
    ),
    Pattern(
        "honest baseline",
        _baseline_that_does_not_allow("grid"),
        _any(r"<<<\s*\d{1,2}\s*,", r"\bdim3\s+\w+[({]\s*\d{1,2}\s*[)}]"),  # fewer blocks than any GPU here has SMs
        f"{_HONEST}, or `allows: grid` where the grid's size is the idea",
    ),
    Pattern(
        "honest baseline",
        _baseline_that_does_not_allow("sync"),
        _any(
            *(r"\bcuda(Device|Stream|Event)Synchronize\b", r"\.synchronize\(\)"),
            *(r"\.item\(\)", r"\.cpu\(\)", r"\.to\([\"']cpu[\"']\)", r"\bcudaMemcpy(DeviceToHost|HostToDevice)\b"),
        ),
        f"{_HONEST}, or `allows: sync` where the sync, or the way by the host, is the idea",
    ),
    _scope("torch.compile", 14, _any(r"\btorch\.compile\b"), but=(13,)),  # on all sides alike: it quantizes
    # NVSHMEM in kernels; warp specialization; programmatic dependent launch, beside the CUDA side; scaled FP8
    _scope("Triton", 14, _any(r"^\s*(import|from) triton\b"), but=(4, 10, 12, 13)),
    _scope("CUDA graphs", 12, _any(r"\bcudaGraph", r"\btorch\.cuda\.(CUDAGraph|graph)\b", r"\bmake_graphed_callables\b")),
    # Chapter 4 overlaps communication; scripts of chapter 2 measure both ways of a link at once.
    _scope("a second stream", 11, _any(r"\bcudaStreamCreate", r"\btorch\.cuda\.Stream\("), but=(4,), measuring=(2,)),
    _scope("TMA copies", 7, _any(r"\bcp_async_bulk", r"\bcp\.async\.bulk", r"\bCUtensorMap\b")),
    _scope("pipelines of several stages", 10, _any(r"\bSTAGES\b", r"\bcuda::(make_)?pipeline", r"\bmake_pipeline\b")),
    _scope("clusters", 10, _any(r"__cluster_dims__", r"ClusterDimension\b", r"\bthis_cluster\b")),
    Pattern(
        "environment",
        _ours_but_environment,
        _any(r"\bos\.(environb?|getenv|putenv|unsetenv)\b", r"\bfrom os import\b.*\b(environb?|getenv|putenv)\b"),
        "common/python/machine/description.py to be the one that reads the environment",
    ),
    Pattern(
        "sys.path",
        _python_but_loader,
        _any(r"\bsys\.path\.(insert|append|extend)\b", r"\bsys\.path\s*(\[[^]]*\]\s*)?\+?=(?!=)", r"\baddsitedir\b"),
        "common/python/child/sides/loader.py to be the one that edits it",
    ),
    Pattern("private", _anywhere, _any(r"(?<![\w.~)}-])/(work|root|home|Users)/\w"), "a path that every reader has", in_comments=True),
    Pattern(
        "private",
        _anywhere,
        _any(r"\b(pypi|npmjs|debian|ubuntu|pythonhosted)\.(org|com)\b"),
        "packages by name; whoever installs them chooses the host",
        in_comments=True,
    ),
)


def check_patterns(sources: Iterable[Source]) -> Iterator[Finding]:
    """A finding for every line with text that its file may not hold."""
    for source in sources:
        for pattern in PATTERNS:
            if pattern.applies(source):
                text = source.text if pattern.in_comments else source.code
                for number, line in enumerate(text.splitlines(), start=1):
                    if match := pattern.forbidden.search(line):
                        yield source.finding(number, pattern.rule, f"`{match[0].strip()}`", pattern.expected)
