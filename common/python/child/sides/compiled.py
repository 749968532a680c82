"""What torch.compile did in this process that makes a side slow, though nothing fails: graph breaks, recompilations, failed autotuning.

What PyTorch counts anyway is read, of 2.11 and later, and nothing is imported for it: a side that compiles nothing has nothing to tell.
"""

from __future__ import annotations

import logging
import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from common.python.results import CompilerFinding

_SELECTOR = "torch._inductor.select_algorithm"  # its module, and its logger
_LIMIT = "Dynamo recompile limit exceeded"
_MOST_LETTERS = 160


class Compiler:
    """Watches torch.compile in this process; several of them would each hear of a failed autotuning."""

    def __init__(self) -> None:
        self._breaks = 0  # that were there before the side was prepared
        self._last: Any = None  # the latest compilation by then
        self._autotuning = _Autotuning()
        logging.getLogger(_SELECTOR).addHandler(self._autotuning)

    def begin(self) -> None:
        """A side is prepared: what was compiled before is not of it."""
        if known := sys.modules.get("torch._dynamo.utils"):
            self._breaks = len(known.graph_break_reasons)
            self._last = next(reversed(known.get_compilation_metrics()), None)
        self._autotuning.failed.clear()

    def findings(self) -> list[CompilerFinding]:
        """What is to be told of the side since it was prepared, at most one finding of a kind."""
        found = [*_of_autotuning(self._autotuning.failed)]
        if known := sys.modules.get("torch._dynamo.utils"):
            reasons, compilations = known.graph_break_reasons, known.get_compilation_metrics()
            since = reasons[self._breaks :] if self._breaks <= len(reasons) else reasons  # else the side has had them forgotten
            places = [id(each) for each in compilations]
            new = compilations[places.index(id(self._last)) + 1 :] if id(self._last) in places else compilations
            found += [*_of_breaks(since), *_of_compilations(new)]
        return found


class _Autotuning(logging.Handler):
    """Hears of candidates that fail, and from then on of what each autotuning is left with.

    Some candidates that fail are nothing to tell: most need more shared memory than there is. Where no generated kernel is left, PyTorch
    takes its own kernel, as if nobody had asked for autotuning; where that is missing too, it raises.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.failed: list[tuple[str, int, str]] = []  # operation, its candidates, the first one's reason
        self._reasons: list[str] = []  # since the latest autotuning
        self._listens = False

    def emit(self, record: logging.LogRecord) -> None:
        """A candidate failed: the selector is imported by now."""
        self._reasons.append(record.getMessage())
        if not self._listens:
            self._listens = True
            sys.modules[_SELECTOR].add_feedback_saver(self._hear)

    def _hear(self, timings: dict[Any, float], name: str, *_rest: object) -> None:
        own = sys.modules[_SELECTOR].ExternKernelCaller
        generated = [ms for choice, ms in timings.items() if not isinstance(choice, own)]
        reasons, self._reasons = self._reasons, []
        if reasons and not any(math.isfinite(ms) for ms in generated):
            self.failed.append((name, max(len(generated), len(reasons)), reasons[0]))


def _of_autotuning(failed: Sequence[tuple[str, int, str]]) -> Iterator[CompilerFinding]:
    if failed:
        name, candidates, reason = failed[0]
        said = _short(re.sub(r"^Runtime error during autotuning:|\.?\s*Ignoring this choice\.$", "", reason.strip())).rstrip(".")
        of = f"its {candidates} candidates" if candidates > 1 else "its one candidate"
        yield CompilerFinding(kind="untuned", count=len(failed), first=f"{name}, as none of {of} ran ({said})")


def _of_breaks(reasons: Sequence[Any]) -> Iterator[CompilerFinding]:
    """By their places, for a side that is set up several times breaks in one place as often."""
    places: dict[str, str] = {}
    for reason in reasons:
        places.setdefault(_place_of(reason.user_stack), _first_line(reason.reason))
    if places:
        yield CompilerFinding(kind="broken", count=len(places), first=_first_of(places))


def _of_compilations(compilations: Sequence[Any]) -> Iterator[CompilerFinding]:
    """Of what was compiled: functions compiled again, such as were given up for that, and such as were left to Python from the start."""
    functions: dict[str, list[Any]] = defaultdict(list)
    names: dict[str, str] = {}  # by the number of the frame
    left: dict[str, str] = {}
    limited: dict[str, str] = {}
    for each in compilations:
        frame, reason = str(each.compile_id).partition("/")[0], _first_line(each.fail_reason or "")
        if reason == _LIMIT:
            limited.setdefault(names.get(frame, "a function"), _guard_of(each.recompile_reason))
        if each.co_name is None or each.is_forward is False:
            continue
        name = names[frame] = f"{each.co_name} in {Path(each.co_filename).name}:{each.co_firstlineno}"
        functions[name].append(each.recompile_reason)
        if each.fail_type == "Unsupported" and reason != _LIMIT:
            left.setdefault(name, reason)
    again = {name: count for name, reasons in functions.items() if (count := _times_again(reasons))}
    if again:
        name = next(iter(again))
        guard = _guard_of(next(filter(None, functions[name])))
        yield CompilerFinding(kind="again", count=sum(again.values()), first=f"{name} ({guard})")
    if limited:
        yield CompilerFinding(kind="limit", count=len(limited), first=_first_of(limited))
    if left:
        yield CompilerFinding(kind="left", count=len(left), first=_first_of(left))


def _times_again(reasons: Sequence[str | None]) -> int:
    """How often one function was compiled again, of which each compilation has its reason, and the first of each module has none.

    A side of several sets of buffers is imported once for each. One that is prepared again may be compiled again for that alone.
    """
    first = reasons.count(None)
    again = len(reasons) - first
    return -(-again // first) if first else again - 1


def _guard_of(reason: str | None) -> str:
    """The first guard that failed, without the number of its compilation and the place that it comes from."""
    return re.split(r"\s+# ", _first_line(re.sub(r"^\d+/\d+: ", "", reason or "no guard is known")))[0]


def _place_of(stack: Sequence[Any]) -> str:
    return f"{Path(stack[-1].filename).name}:{stack[-1].lineno}" if stack else "a place that is not known"


def _first_of(reasons: Mapping[str, str]) -> str:
    where, reason = next(iter(reasons.items()))
    return f"{where} ({reason})"


def _first_line(text: str) -> str:
    return _short(text.strip().partition("\n")[0])


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _MOST_LETTERS else f"{words[:_MOST_LETTERS]}..."
