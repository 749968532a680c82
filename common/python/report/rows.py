"""How a figure is put in words: the same on a terminal, in Markdown and in HTML, and never a time for a row that did not pass."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from common.python.errors import Status
from common.python.gate.expectations import slower_than_equal
from common.python.gate.predicted import predicted_lines
from common.python.machine.description import Source
from common.python.pairs.goals import ENERGY, SETUP, UNITS
from common.python.results import BASELINE, OPTIMIZED, Interval, PairResult, PairTiming, Run, SideResult, StopReason, Verdict, VerdictKind
from common.python.settings import Settings
from common.python.wording import DIGITS, at_shape, figure_interval_text, figure_text, one_line, speedup_text, time_text

_SHORT_COMMIT = 10
BRANCH = "\N{BOX DRAWINGS LIGHT UP AND RIGHT}"
"""Marks a rung of a ladder, or the library, below the pair's own line."""


@dataclass(frozen=True)
class Line:
    """One line of a result table: one side against the baseline, at one shape. What was not measured is an empty text.

    `rung` is how many times better a side of a ladder is than the one before it.
    """

    label: str
    baseline: str = ""
    side: str = ""
    speedup: str = ""
    share: str = ""
    rung: str = ""
    status: str = ""
    verdict: str = ""
    proofs: str = ""
    units: str = ""
    conditions: str = ""


def lines_of(row: PairResult) -> list[Line]:
    """The lines of `row`: one a shape and side; a half has one time and no speedup; a row that did not pass has no time."""
    if not row.timings:
        return [Line(row.target, status=str(row.status), proofs=proofs_text(row))]
    lines = [line for shape, timing in row.timings.items() for line in _lines_of_shape(row, shape, timing)]
    return [replace(lines[0], proofs=proofs_text(row)), *lines[1:]]


def _lines_of_shape(row: PairResult, shape: str, timing: PairTiming) -> list[Line]:
    """The pair's own line; the rungs of a ladder, and the library, are marked as its branches."""
    first = Line(
        f"{row.target}{at_shape(shape)}",
        baseline=_own_figure(timing, BASELINE),
        status=str(row.status),
        verdict=str(row.verdicts[shape].kind) if shape in row.verdicts else "",
        units=str(len(timing.units)),
        conditions=conditions_text(timing),
    )
    figures = {
        side: {
            "side": _own_figure(timing, side),
            "speedup": _ratio_of(timing, side),
            "share": _share_of(timing, side),
            "rung": _rung_of(timing, side),
        }
        for side in timing.time_ns
        if side != BASELINE
    }
    own = figures.pop(OPTIMIZED, {})
    own["share"] = " → ".join(filter(None, (_share_of(timing, BASELINE), own.get("share", ""))))
    return [replace(first, **own), *(Line(f"{BRANCH} {side}", **figure) for side, figure in figures.items())]


def verdict_text(verdict: Verdict) -> str:
    """A verdict and its sentence: `REGRESSED: speedup -3.0 % [-3.2, -2.8]`."""
    return one_line(f"{verdict.kind}: {verdict.sentence}")


def _own_figure(timing: PairTiming, side: str) -> str:
    """What a side has of the row's goal: its time, or bytes, joules, an error or a metric."""
    if timing.figures:
        return figure_text(timing.figures[side].estimate, timing.unit) if side in timing.figures else ""
    return time_text(timing.time_ns[side].estimate) if side in timing.time_ns else ""


def _ratio_of(timing: PairTiming, side: str) -> str:
    """How many times better than the baseline a side is at the row's goal, which is named where that is not time."""
    ratio = shown_ratios(timing).get(side)
    named = f" {timing.goal}" if timing.figures else ""
    return f"{speedup_text(ratio)}{named}" if ratio else ""


def shown_ratios(timing: PairTiming) -> Mapping[str, Interval]:
    """How many times better than the baseline each side is at what the row is about: time, or a goal of which it has figures."""
    return timing.gains if timing.figures else timing.speedups


def _rung_of(timing: PairTiming, side: str) -> str:
    return speedup_text(timing.rungs[side]) if side in timing.rungs else ""


def _share_of(timing: PairTiming, side: str) -> str:
    """The side's share of the ceiling: 93 %, and under a tenth 4.1 %."""
    if side not in timing.shares:
        return ""
    percent = 100 * timing.shares[side].share
    return f"{percent:.{0 if percent >= 10 else 1}f} %"


def proofs_text(row: PairResult) -> str:
    """How many of the claims are proven, `3 of 4`; empty where nothing is claimed."""
    return f"{sum(proof.state == 'proven' for proof in row.proofs)} of {len(row.proofs)}" if row.proofs else ""


def conditions_text(timing: PairTiming) -> str:
    """What the time is the time of: device, clock, cache state and mode; on a CPU torch has one thread, whatever it would have alone."""
    device = "cpu with one torch thread" if timing.device == "cpu" else timing.device
    return f"{device}, {timing.clock} clock, {timing.cache}, {timing.mode.replace('_', ' ')}"


_STOPPED = {
    StopReason.UNIT_CAP: "it stopped at the most units allowed, before the interval was narrow enough",
    StopReason.TIME_BUDGET: "it stopped when its time was up, before the interval was narrow enough",
    StopReason.THROTTLED: "the device throttled, so it stopped",
}


def _places_note(timing: PairTiming) -> list[str]:
    """Which inputs and outputs lie in the host's memory, and on which NUMA nodes; of pageable memory, that no stream was held."""
    found = []
    for where in ("pinned", "pageable"):
        if names := [name for name, place in timing.places.items() if place == where]:
            nodes = f", NUMA node {' and '.join(map(str, timing.numa_nodes))}" if timing.numa_nodes else ""
            found.append(
                f"{', '.join(names)} in {where} memory{nodes}{': a copy can block, so no stream was held' * (where == 'pageable')}"
            )
    return found


def notes_of(timing: PairTiming) -> list[str]:
    """What to know beside the figure, a clause each: what makes it less certain than the best, repeats, the measurement's own notes."""
    found = []
    if not timing.interleaved:
        found.append("the sides took turns, not interleaved")
    if timing.device == "cuda" and timing.clock == "device" and not timing.launch_latency_hidden:
        found.append("the launch latency is not hidden")
    found += _places_note(timing)
    if timing.stop_reason in _STOPPED:
        found.append(_STOPPED[timing.stop_reason])
    if void := sum(block.void for unit in timing.units for blocks in unit.blocks.values() for block in blocks):
        found.append(f"{void} samples were void and are not counted")
    found += _beside_the_goal(timing)
    for side, repeats in timing.repeats.items():
        lowest, highest = (f(repeat.estimate for repeat in repeats) for f in (min, max))
        found.append(f"{side} over {len(repeats)} repeats: {lowest:.{DIGITS}f}x to {highest:.{DIGITS}f}x")
    return [one_line(note) for note in [*found, *timing.notes]]


def _beside_the_goal(timing: PairTiming) -> list[str]:
    """Where the goal is not time, what the times are; where joules of a step are known and not the goal, these; an unequal speed."""
    found = []
    if timing.figures:
        times = [f"{side} {time_text(time.estimate)}" for side, time in timing.time_ns.items()]
        times += [f"{side} is {speedup_text(speedup)} as fast" for side, speedup in timing.speedups.items()]
        found.append(f"time of a step: {', '.join(times)}")
    elif timing.goal in UNITS:
        found.append(f"no {timing.goal} was measured: this GPU has no counter of it")
    else:
        found += [f"{timing.goal} of {side} {speedup_text(gain)} as good as the baseline's" for side, gain in timing.gains.items()]
    if timing.goal != ENERGY:
        found += [f"{side} draws {figure_interval_text(joules, UNITS[ENERGY])} a step" for side, joules in timing.joules.items()]
    return [*found, unequal] if (unequal := slower_than_equal(timing)) else found


def remarks(row: PairResult, *, everything: bool = False) -> list[str]:
    """What needs a reader's attention in `row` beside its figures, a line each: notes, and verdicts that say more than SAME.

    With `everything` also verdicts that say no more, each predicted term beside its measurement, and each claim with what was found of it.
    """
    found = [f"{row.target}: {one_line(note)}" for note in row.notes]
    for shape, timing in row.timings.items():
        slower = slower_text(row, shape)
        clauses = [*notes_of(timing), *([slower] if slower else [])]
        if (verdict := row.verdicts.get(shape)) and (everything or _says_more(verdict)):
            clauses.append(verdict_text(verdict))
        elif everything and shape in row.ungated and not slower:
            clauses.append(f"not gated: {row.ungated[shape]}")
        found += [f"{row.target}{at_shape(shape)}: {clause}" for clause in clauses]
    if everything:
        found += [f"{row.target}: {line}" for line in [*filter(None, [compilation_text(row)]), *predicted_lines(row)]] + _proof_remarks(row)
    return found


def slower_text(row: PairResult, shape: str) -> str:
    """That the optimized side is surely worse than the baseline, where no gate holds it to anything; "" of any other timing."""
    timing, verdict = row.timings[shape], row.verdicts.get(shape)
    ratio = shown_ratios(timing).get(OPTIMIZED)
    is_gated = verdict is not None and verdict.kind not in (VerdictKind.NEW, VerdictKind.UNGATED)
    if ratio is None or ratio.high >= 1 or is_gated:
        return ""
    worse = f"worse than baseline in {timing.goal}" if timing.figures else "slower than baseline"
    why = f"; not gated: {row.ungated[shape]}" if shape in row.ungated else ""
    return f"{OPTIMIZED} is {worse}: {speedup_text(ratio)}{why}"


def compilation_text(row: PairResult) -> str:
    """What a row of compiled sides took beside its first compilation; of one whose goal is set-up, all of it; "" without such sides."""
    if row.first_compilation_s is None or row.beyond_compilation_s is None:
        return ""
    if any(timing.goal == SETUP for timing in row.timings.values()):
        return f"took {row.seconds:.0f} s: its goal is set-up, so every process compiles"
    return f"took {row.seconds:.0f} s: first compilation {row.first_compilation_s:.0f} s, beside it {row.beyond_compilation_s:.0f} s"


def _says_more(verdict: Verdict) -> bool:
    """Whether there is more to know than that nothing changed: a rung of which nothing is expected is not gated."""
    return verdict.kind is not VerdictKind.SAME or "nothing is expected of" in verdict.sentence


def _proof_remarks(row: PairResult) -> list[str]:
    """Claims of one side that share a state and its detail share a line: a reason is told once, not once a claim."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for proof in row.proofs:
        alike.setdefault((proof.side, proof.state, one_line(proof.detail)), []).append(one_line(proof.claim))
    return [f"{row.target}: {state}: {', '.join(claims)} in {side}: {detail}" for (side, state, detail), claims in alike.items()]


def proofs_summary(rows: Iterable[PairResult]) -> str:
    """What became of all claims: `proofs: 14 proven, 3 unchecked (no profiler ran)`; empty where nothing is claimed."""
    proofs = [proof for row in rows for proof in row.proofs]
    unchecked = Counter(one_line(proof.detail) for proof in proofs if proof.state == "unchecked")
    counts = [f"{count} {state}" for state in ("proven", "failed") if (count := sum(proof.state == state for proof in proofs))]
    if unchecked:
        most, _ = unchecked.most_common(1)[0]
        others = f"{len(unchecked) - 1} other reason{'s' if len(unchecked) > 2 else ''}"
        counts.append(f"{unchecked.total()} unchecked ({most}{f'; -v tells {others}' if len(unchecked) > 1 else ''})")
    return f"proofs: {', '.join(counts)}" if counts else ""


def skips_summary(rows: Iterable[PairResult]) -> list[str]:
    """A line a reason for which rows were skipped: `2 skipped: needs wgmma; no CUDA device (ch09:a, ch09:b; try ch07:copy)`."""
    targets: dict[str, list[str]] = {}
    instead: dict[str, list[str]] = {}
    for row in rows:
        if row.status is Status.SKIPPED:
            reason, _, other = one_line(row.reason).partition("; try ")
            targets.setdefault(reason, []).append(row.target)
            instead.setdefault(reason, []).extend([other] if other else [])
    lines = []
    for reason, found in targets.items():
        named = "; ".join(filter(None, (few(found), f"try {few(instead[reason])}" if instead[reason] else "")))
        lines.append(f"{len(found)} skipped: {reason} ({named})")
    return lines


def changed_sources(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The files that differ between what a row was made of at two times, and those that only one of them has."""
    return sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))


def few(names: Iterable[str], most: int = 3) -> str:
    """Different names in their order, of more than `most` how many others there are."""
    different = list(dict.fromkeys(names))
    others = len(different) - most
    return ", ".join(different[:most]) + (f" and {others} more" if others > 0 else "")


def error_text(side: SideResult) -> str:
    """The largest error against the reference over all checks of a side, absolute and relative, and of how many rows if not of all.

    No relative one where no expected value was far enough from zero to have any.
    """
    outputs = [error for check in side.checks for error in check.outputs.values()]
    if not outputs:
        return ""
    rows = [error.rows_checked for error in outputs if error.rows_checked is not None]
    of_rows = f", of {min(rows)} rows a call" if rows else ""
    absolute, relative = (max(errors) for errors in zip(*((error.max_abs, error.max_rel) for error in outputs), strict=True))
    return f"{absolute:.1e} abs{f', {relative:.1e} rel' if relative or not absolute else ''}{of_rows}"


def setup_text(side: SideResult) -> str:
    """What a side costs before its first answer, phase by phase; empty where it was never set up."""
    if side.setup is None:
        return ""
    phases = {"load": side.setup.load_s, "prepare": side.setup.prepare_s, "first call": side.setup.first_call_s}
    build = {} if side.setup.cached or not side.setup.build_s else {"build": side.setup.build_s}
    parts = [f"{name} {time_text(seconds * 1e9)}" for name, seconds in (build | phases).items()]
    return ", ".join(["build cached", *parts] if side.setup.cached else parts)


def setup_seconds(side: SideResult) -> float | None:
    """Seconds of set-up before the first answer, build included; None where the side was never set up."""
    setup = side.setup
    return None if setup is None else setup.build_s + setup.load_s + setup.prepare_s + setup.first_call_s


def break_even_calls(row: PairResult, timing: PairTiming, side: str) -> int | None:
    """After how many calls `side` has paid for the set-up that it costs more than the baseline; None unless it is surely faster."""
    if side not in timing.speedups or timing.speedups[side].low <= 1:
        return None
    costs = [setup_seconds(row.sides[name]) for name in (side, BASELINE)]
    if costs[0] is None or costs[1] is None:
        return None
    gain_ns = timing.time_ns[BASELINE].estimate - timing.time_ns[side].estimate
    return max(0, math.ceil((costs[0] - costs[1]) * 1e9 / gain_ns))


def break_even_text(row: PairResult, timing: PairTiming, side: str) -> str:
    """`break_even_calls` in words; empty where there are none."""
    calls = break_even_calls(row, timing, side)
    return "" if calls is None else f"{calls:,}"


def counts_text(rows: Iterable[PairResult]) -> str:
    """How many targets there are and what became of them: `3 targets: 2 PASSED, 1 SKIPPED`."""
    statuses = [row.status for row in rows]
    counts = [f"{statuses.count(status)} {status}" for status in Status if status in statuses]
    noun = "target" if len(statuses) == 1 else "targets"
    return f"{len(statuses)} {noun}: {', '.join(counts)}" if counts else "no target was run"


def unreached(rows: Iterable[PairResult], run: Run) -> list[str]:
    """The targets that an interrupted run was to do and did not; none of a run that went through."""
    done = {row.target for row in rows}
    return [target for target in run.folders if target not in done] if run.interrupted else []


def commit_name(source: Source | None) -> str:
    """A checkout's commit, and whether files differed from it; "" outside of one."""
    return f"{source.commit}{' with changes' if source.dirty else ''}" if source else ""


def commit_text(name: str) -> str:
    """A `commit_name` with the first ten digits of the commit."""
    commit, *changes = name.split(" ", 1)
    return " ".join([commit[:10], *changes])


def checkout_text(saved: dict[str, Any]) -> str:
    """The `commit_text` of a checkout as run.json has it."""
    return commit_text(commit_name(Source.model_validate(saved)))


def commits_text(environment: dict[str, Any]) -> str:
    """`commit 6cb8b42039`; where the pairs lie in a repository of their own, `harness 6cb8b42039; pairs 945bced4d2`; "" outside of any."""
    harness = environment.get("project")
    pairs = environment.get("root", harness)
    if harness == pairs:
        return f"commit {checkout_text(harness)}" if harness else ""
    told = f"pairs {checkout_text(pairs) if pairs else 'without a commit'}"
    return f"harness {checkout_text(harness)}; {told}" if harness else told


def machine_text(environment: dict[str, Any]) -> str:
    """The machine that an `description.Machine`, as saved in run.json, describes: GPUs or CPU, versions, commits."""
    gpus = Counter(f"{gpu['name']} (driver {gpu['driver']})" for gpu in environment.get("gpus", ()))
    parts = [f"{count} x {name}" if count > 1 else name for name, count in gpus.items()] or ["no GPU"]
    if "cpu" in environment:
        parts.append(f"{environment['cpu']}, {environment['cores']} cores")
    packages = environment.get("packages", {})
    parts += [f"{name} {packages[name]}" for name in ("torch", "triton") if name in packages]
    return "; ".join(filter(None, [*parts, commits_text(environment)]))


def revision_of(run: Run) -> str:
    """The revision that --against named, as it was typed; "" of any other run. A whole commit is cut to ten digits."""
    revision = one_line(str(run.settings.get("against") or ""))
    return revision[:_SHORT_COMMIT] if re.fullmatch("[0-9a-f]{40,}", revision) else revision


def side_titles(run: Run) -> tuple[str, str]:
    """What the two sides of a row are called above a column of theirs."""
    revision = revision_of(run)
    return (f"at {revision}", "now") if revision else (BASELINE, OPTIMIZED)


def against_text(run: Run) -> str:
    """What the baseline is in a run with --against; "" of any other run."""
    revision, commit = revision_of(run), run.against[:_SHORT_COMMIT]
    named = f" (commit {commit})" if commit and commit != revision else ""
    return f"each pair's own optimized side at {revision}{named}" if revision else ""


def settings_text(run: Run) -> str:
    """The seed of `run` and every setting that is not at its default."""
    usual = Settings().model_dump(mode="json")
    said = {"seed", "verbose"}  # the one of the run itself is told, the other changes no row
    changed = [_setting_text(name, value) for name, value in run.settings.items() if name not in said and usual.get(name) != value]
    return "; ".join([f"seed {run.seed}", *(changed or ["default settings"])])


def _setting_text(name: str, value: Any) -> str:
    said = name.replace("_", " ")
    return said if value is True else f"{said} {_listed(value)}"


def _listed(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={_listed(each)}" for key, each in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def span_text(run: Run) -> str:
    """When `run` began and ended, to the second, in UTC; what is no date stays as it is."""
    moments = [moment for moment in (run.started, run.ended) if moment]
    try:
        began, *ended = (datetime.fromisoformat(moment).astimezone(UTC) for moment in moments)
    except ValueError:
        return " to ".join(moments)
    said = [f"{began:%Y-%m-%d %H:%M:%S}", *(f"{end:{'' if end.date() == began.date() else '%Y-%m-%d '}%H:%M:%S}" for end in ended)]
    return f"{' to '.join(said)} UTC"
