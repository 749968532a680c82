r"""What a side may claim of its machine code and of its launches: the grammar of `proves:` and `has:` lines, one claim a line.

    TECHNIQUE [in KERNEL]           an instruction of a row of techniques.tsv, in a kernel that step launches
    /PATTERN/ [in KERNEL]           an instruction that a regular expression matches, as in /\bHGMMA\b/
    kernel TEXT                     a kernel that step launches has TEXT in its name
    not ...                         none of the three above
    more ..., fewer ...             more, or fewer, of them than in the baseline
    AMOUNT [in KERNEL] IS VALUE     an amount below, as in `registers <= 64` or `launches < 0.1 x baseline`
    overlap IS VALUE                of the time that the busiest stream could hide, how much is hidden: 0 one after the other, 1 all of it
    overlap A B IS VALUE            time in which both run, as a share of the shorter's: kernels or copies with A and B in their names
    calls NAME IS VALUE             calls of the host to CUDA with NAME in their names, as in `calls cudaStreamSynchronize == 0`
    counter NAME IS VALUE           a profiler's counter, as in `counter dram__bytes.sum < 0.5 x baseline`

KERNEL is a part of a kernel's name, IS one of == < <= > >=, VALUE a number, also in KiB or MiB, or a multiple of what the baseline has.
The amounts, of all kernels that step launches or of those with KERNEL in their names:

    registers, spills               of a thread, and bytes spilled to memory and back: the most of any kernel
    shared_memory                   bytes a block: the most of any launch
    grid, block, cluster            blocks in a grid, threads in a block, blocks in a cluster: the most of any launch
    launches                        times that the host starts a kernel or a graph of them
    kernels, graph_nodes            kernels that run, and those of them that a graph started
    blocks                          the blocks of all their grids

What has to be `has:` must hold in the side; what it `proves:` must hold in it and not in the baseline.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from common.python.errors import BenchmarkError
from common.python.pairs.directives import Directives
from common.python.pairs.suggestions import suggestions

IN_CODE = ("registers", "spills")
IN_A_LAUNCH = ("shared_memory", "grid", "block", "cluster")
COUNTED = ("launches", "kernels", "graph_nodes", "blocks")
AMOUNTS = (*IN_CODE, *IN_A_LAUNCH, *COUNTED)
INSTRUCTIONS = "instructions"

_TECHNIQUES = Path(__file__).with_name("techniques.tsv")
_EXAMPLES = {
    "kernel": "kernel gemm",
    "overlap": "overlap >= 0.5",
    "calls": "calls cudaStreamSynchronize == 0",
    "counter": "counter dram__bytes.sum < 0.5 x baseline",
    "shared_memory": "shared_memory <= 100 KiB",
    **{amount: f"{amount} <= 64" for amount in AMOUNTS if amount != "shared_memory"},
}
_UNITS = {None: 1, "KiB": 1 << 10, "MiB": 1 << 20}
_VALUE = r"(?P<number>\d+(?:\.\d+)?)(?: (?P<unit>KiB|MiB))?(?P<times> x baseline)?|(?P<baseline>baseline)"
_COMPARISON = re.compile(
    rf"(?:(?P<amount>{'|'.join(AMOUNTS)})(?: in (?P<kernel>\S+))?|counter (?P<counter>\S+)|calls (?P<calls>\S+)"
    r"|overlap(?: (?P<first>\S+) (?P<second>\S+))?)"
    rf" (?P<relation>==|<=|>=|<|>) (?:{_VALUE})"
)
_PRESENCE = re.compile(
    r"(?:(?P<how>not|more|fewer) )?(?:kernel (?P<part>\S+)|(?:/(?P<pattern>.+)/|(?P<technique>\w+))(?: in (?P<kernel>\S+))?)"
)


@dataclass(frozen=True)
class Technique:
    """A row of techniques.tsv. In a kernel without `beside`, or with one of `unless`, a match is no evidence; `trap` says why."""

    name: str
    pattern: re.Pattern[str]
    architectures: tuple[str, ...]
    beside: str = ""
    unless: tuple[str, ...] = ()
    trap: str = ""


@dataclass(frozen=True)
class Measure:
    """What a claim is about: its `kind` is "instructions", one of AMOUNTS, "overlap", "calls" or "counter".

    `names` holds a counter's name, a part of the names of calls, or the two that overlap, or nothing where any streams do; `kernel` a part
    of the name of the kernels that count, or nothing.
    """

    kind: str
    kernel: str = ""
    names: tuple[str, ...] = ()
    technique: Technique | None = None


@dataclass(frozen=True)
class Claim:
    """One line: `measure` stands in `relation` to `bound`, or to `bound` times what the baseline has.

    `separates` is true of `proves:`: what holds in the side must not hold in the baseline.
    """

    text: str
    separates: bool
    measure: Measure
    relation: str
    bound: float
    relative: bool = False


@functools.cache
def techniques() -> Mapping[str, Technique]:
    """The rows of techniques.tsv by name."""
    rows = {}
    for line in _TECHNIQUES.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, pattern, architectures, condition, trap = [*line.split("\t"), "", ""][:5]
            word, _, others = condition.partition(" ")
            beside, unless = (others if word == "with" else ""), (tuple(others.split(",")) if word == "without" else ())
            rows[name] = Technique(name, re.compile(pattern), tuple(architectures.split(",")), beside, unless, trap)
    return rows


def read_claims(path: Path, directives: Directives) -> tuple[Claim, ...]:
    """The claims of the side in the file at `path`, whose `directives` were read.

    Raises BenchmarkError, naming file and line, for what is not in the grammar and for a claim in the wrong kind of file.
    """
    claims = []
    role = path.name.partition("_")[0]
    for key, texts in (("proves", directives.proves), ("has", directives.has)):
        for text in texts:
            try:
                if role == "workload" or (key == "proves" and role in ("baseline", "library")):
                    raise _Unfit(f" in a {role}; expected {'a claim' if role == 'workload' else 'it'} in an optimized side")
                claims.append(parse_claim(text, separates=key == "proves"))
            except _Unfit as unfit:
                raise BenchmarkError(f"{path.name}:{_line_of(path, key, text)}: found `{key}: {text}`{unfit}") from None
    return tuple(claims)


class _Unfit(Exception):
    """What is wrong with a claim: the end of a sentence that has quoted it."""


def parse_claim(text: str, *, separates: bool) -> Claim:
    """The claim that `text` makes; `separates` where it stands behind `proves:`."""
    text = " ".join(text.split())
    match = _COMPARISON.fullmatch(text)
    if match is not None:
        claim = _comparison(text, match, separates)
    elif (match := _PRESENCE.fullmatch(text)) is not None:
        claim = _presence(text, match, separates)
    else:
        raise _unknown(text)
    if claim.relative and not separates:
        raise _Unfit("; expected `proves:` for what is compared with the baseline")
    return claim


def _comparison(text: str, match: re.Match[str], separates: bool) -> Claim:
    if match["amount"]:
        measure = Measure(match["amount"], match["kernel"] or "")
    elif match["counter"] or match["calls"]:
        measure = Measure("counter" if match["counter"] else "calls", names=(match["counter"] or match["calls"],))
    else:
        measure = Measure("overlap", names=(match["first"], match["second"]) if match["first"] else ())
    relative = bool(match["times"] or match["baseline"])
    bound = 1.0 if match["baseline"] else float(match["number"]) * _UNITS[match["unit"]]
    return Claim(text, separates, measure, match["relation"], bound, relative)


def _presence(text: str, match: re.Match[str], separates: bool) -> Claim:
    kernel = match["kernel"] or ""
    if match["part"]:
        measure = Measure("kernels", match["part"])
    elif match["pattern"]:
        try:
            measure = Measure(INSTRUCTIONS, kernel, technique=Technique(f"/{match['pattern']}/", re.compile(match["pattern"]), ()))
        except re.error as error:
            raise _Unfit(f", a pattern with {error}; expected a regular expression") from None
    elif match["technique"] in techniques():
        measure = Measure(INSTRUCTIONS, kernel, technique=techniques()[match["technique"]])
    else:
        raise _unknown(text)
    if match["how"] in ("more", "fewer"):
        return Claim(text, separates, measure, ">" if match["how"] == "more" else "<", 1.0, relative=True)
    return Claim(text, separates, measure, "==" if match["how"] else ">", 0.0)


def _unknown(text: str) -> _Unfit:
    """Says what a claim that could not be read may have meant."""
    words = text.split(" ")
    if words[0] in ("not", "more", "fewer"):
        words = words[1:]
    first = words[0] if words else ""
    if first in _EXAMPLES:
        return _Unfit(f"; expected a claim such as `{_EXAMPLES[first]}`")
    names = (*techniques(), *_EXAMPLES)
    near = (
        suggestions(" ".join(words), names)
        or suggestions(first, names)
        or [each.name for each in techniques().values() if first.isupper() and first in each.pattern.pattern]
    )
    expected = " or ".join(near[:3]) or f"a technique of {_TECHNIQUES.name}, a /pattern/ or one of {', '.join(_EXAMPLES)}"
    return _Unfit(f"; expected {expected}")


def require_countable(path: Path, claims: Iterable[Claim], ranks: Iterable[int]) -> None:
    """Raise BenchmarkError, naming file and line, where one of the `claims` of the side at `path` is of a counter, and a row has `ranks`.

    Profilers see one process, so on no machine could such a claim be shown or refuted.
    """
    for claim in claims:
        if claim.measure.kind == "counter":
            key = "proves" if claim.separates else "has"
            found = f"found `{key}: {claim.text}` and ranks={tuple(ranks)}"
            expected = "expected a claim that a watched step shows: profilers count on no row of several ranks"
            raise BenchmarkError(f"{path.name}:{_line_of(path, key, claim.text)}: {found}; {expected}")


def _line_of(path: Path, key: str, text: str) -> int:
    """The line on which the file at `path` makes the claim `text`."""
    lines = [" ".join(line.split()) for line in path.read_text(encoding="utf-8").splitlines()]
    return next(number for number, line in enumerate(lines, start=1) if f"{key}:" in line and line.endswith(" ".join(text.split())))
