"""Each predicted term beside its measurement. A term that misses is reported even where the speedup, a ratio of two terms, hits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from common.python.gate.expectations import Expectation, read_expectations
from common.python.machine.ceilings import Ceiling, MachineCeilings
from common.python.pairs.directives import ladder_steps
from common.python.pairs.discovery import HALVES, Pair
from common.python.pairs.goals import ACCURACY
from common.python.pairs.predictions import (
    BYTES,
    ENERGIES,
    ERROR,
    JOULES,
    PEAK,
    SECONDS,
    TIME,
    Card,
    Constant,
    Guess,
    Prediction,
    amount_text,
    card_for,
    is_model,
    model_of,
    predictions_of,
    require_names,
    timed_shapes,
)
from common.python.pairs.serving import is_lower_better, unit_of
from common.python.pairs.workload import DEFAULT_SHAPE
from common.python.results import BASELINE, OPTIMIZED, Interval, PairResult, PairTiming, PredictedTerm, ReportedMetric
from common.python.wording import at_shape, ratio_text

MISSED = 1.25
"""The factor from which on a term is a miss."""

SPEEDUP = "speedup"
_RENAMED = {"l2_read": "l2", "shared": "smem", "fp32_fma": "fp32", "fp32": "fp32_matmul"}
_OF_THE_MACHINE = ("storage_read", "storage_write", "peer_out", "peer_in", "peer_both", "all_reduce")
"""What `peak` measures of the machine around a GPU, which the model says nothing of."""


@dataclass(frozen=True)
class Measured:
    """What was measured of one pair at one shape on one GPU model, in ns, bytes and the units of its metrics."""

    gpu: str
    shape_name: str
    shape: Mapping[str, object]
    time_ns: Mapping[str, float]
    peak_bytes: Mapping[str, int | None]
    counters: Mapping[str, Mapping[str, float]]
    metrics: Mapping[str, Mapping[str, ReportedMetric]]
    goal: str = TIME
    ratio: float | None = None
    joules: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)

    def figure(self, prediction: Prediction, side: str) -> float | None:
        """What a side has of what was predicted, in the prediction's unit; None where nobody measured it."""
        scale = 1e-9 if prediction.unit == "s" else 1.0
        if prediction.is_counter:
            value = self.counters.get(side, {}).get(prediction.figure)
            return None if value is None else value * scale
        if prediction.figure == TIME:
            return self.time_ns[side] * scale if side in self.time_ns else None
        if prediction.figure == PEAK:
            return self.peak_bytes.get(side)
        if prediction.figure in (JOULES, ERROR):
            return (self.joules if prediction.figure == JOULES else self.errors).get(side)
        metric = self.metrics.get(side, {}).get(prediction.figure)
        return None if metric is None else _in_unit(metric, prediction.unit)


def card_from(ceilings: MachineCeilings) -> Card:
    """What `peak` measured of one GPU as a card: bursts alone, of DRAM with a clean L2, as sides are timed, under the names of a card."""
    constants = {}
    for ceiling in ceilings.ceilings:
        if ceiling.mode == "burst" and ceiling.l2 != "dirty" and ceiling.name not in _OF_THE_MACHINE:
            constants[_RENAMED.get(ceiling.name, ceiling.name)] = _measured_constant(ceiling)
    if ceilings.cache_bytes:
        constants["l2_bytes"] = Constant(ceilings.cache_bytes, "bytes", "chip fact", "size of the L2, as the driver tells it")
    if ceilings.sm_clock_max_mhz:
        told = "highest clock of the SMs, as the driver tells it; long work may hold a lower one"
        constants["sm_clock"] = Constant(ceilings.sm_clock_max_mhz * 1e6, "Hz", "chip fact", told)
    constants["warp"] = Constant(32, "threads", "chip fact", "threads of a warp")
    constants["sector"] = Constant(32, "bytes", "chip fact", "what the L1 asks the L2 for at least")
    return Card(model_of(ceilings.name), ceilings.name, ceilings.driver, ceilings.measured, constants)


def _measured_constant(ceiling: Ceiling) -> Constant:
    value = float(f"{ceiling.value.estimate:.4g}")
    return Constant(value, ceiling.unit, "measured", _WHAT.get(ceiling.name, ceiling.name.replace("_", " ")) + f" ({ceiling.how})")


_WHAT = {
    "dram_read": "reads from DRAM",
    "dram_write": "writes to DRAM",
    "dram_copy": "a copy in DRAM, bytes read and bytes written together",
    "dram_triad": "a = b + s * c in DRAM, all three arrays together",
    "l2_read": "reads that hit the L2",
    "l2_write": "writes that stay in the L2",
    "l2_copy": "a copy within the L2, bytes read and bytes written together",
    "shared": "reads of shared memory, all SMs together",
    "fp32_fma": "FP32 multiply-adds on the CUDA cores, 2 flops each",
    "fp32": "torch's FP32 matrix product, no tensor cores",
    "fp64": "torch's FP64 matrix product",
    "tf32": "torch's TF32 matrix product",
    "bf16": "torch's BF16 matrix product",
    "fp16": "torch's FP16 matrix product",
    "fp8": "torch's FP8 matrix product",
    "bf16_mma_sync": "BF16 products by mma.sync",
    "h2d": "copies from pinned host memory",
    "d2h": "copies to pinned host memory",
    "h2d_pageable": "copies from pageable host memory",
    "d2h_pageable": "copies to pageable host memory",
    "launch": "one launch",
    "graph_launch": "one launch of a graph",
    "graph_node": "one further node of a chain in a graph",
}


def terms_of(pair: Pair, expectation: Expectation, shape_name: str = "") -> list[PredictedTerm]:
    """The terms of `pair` beside an expectation that was committed; none of a pair that has no `predicts:` and no `guess:` line.

    `shape_name` is the name that the expectation is filed under; without one it is looked up. Raises BenchmarkError for a bad line.
    """
    return predicted_for(pair.workload, pair.sides, card_for(expectation.provenance.gpu), expectation, shape_name)


def predicted_for(
    workload: Path, sides: Mapping[str, Path], card: Card | None, expectation: Expectation, shape_name: str = ""
) -> list[PredictedTerm]:
    """The terms of a pair, its workload and sides by file, with the constants of `card`. Raises BenchmarkError for a bad line."""
    filed = list(_filed_beside(workload, expectation))
    names = list(timed_shapes(workload)) or [name for name, _ in filed]
    shape_name = shape_name or next((name for name, kept in filed if kept == expectation), names[0] if names else DEFAULT_SHAPE)
    predictions, guess = predictions_of(workload, sides)
    measured = Measured(
        gpu=expectation.provenance.gpu,
        shape_name=shape_name,
        shape=expectation.shape,
        time_ns={side: kept.time_ns.estimate for side, kept in expectation.sides.items()},
        peak_bytes={side: kept.peak_memory_bytes for side, kept in expectation.sides.items()},
        counters={side: kept.counters for side, kept in expectation.sides.items()},
        metrics=_with_served(expectation.metrics, expectation.figures),
        goal=expectation.goal,
        ratio=expectation.ratio.estimate,
        joules={side: kept.joules.estimate for side, kept in expectation.sides.items() if kept.joules},
        errors={side: kept.figure.estimate for side, kept in expectation.sides.items() if kept.figure and expectation.goal == ACCURACY},
    )
    known = [*HALVES, *sides, *expectation.sides, *_steps(workload)]
    for prediction in predictions:
        require_names(prediction, dict.fromkeys(known), names or [shape_name])
    return list(_terms(predictions, guess, measured, card, shape_name == (names or [shape_name])[0]))


def _filed_beside(workload: Path, expectation: Expectation) -> Iterator[tuple[str, Expectation]]:
    """What is filed beside a workload of the pair that `expectation` is of, by named shape in the order in which it was accepted."""
    for path in sorted(workload.parent.glob("expectations_*.json")):
        for kept in read_expectations(path).pairs.values():
            if expectation in kept.values():
                yield from kept.items()
                return


def _steps(workload: Path) -> Iterator[str]:
    """The names of the sides of a ladder."""
    yield from (Path(step).stem.removeprefix("optimized_") for step in ladder_steps(workload))


def terms_of_timing(
    row: PairResult, name: str, predictions: tuple[tuple[Prediction, ...], Guess | None], gpu: str, card: Card | None
) -> tuple[PredictedTerm, ...]:
    """The terms of one timing of a row that was measured on `gpu`. Raises BenchmarkError for a bad line."""
    timing = row.timings[name]
    is_first = timing is next(iter(row.timings.values()))
    profiles = {side: each.profile for side, each in row.sides.items()} if is_first else {}  # a row is profiled at its first shape
    measured = Measured(
        gpu=gpu,
        shape_name=name,
        shape=timing.shape,
        time_ns={side: time.estimate for side, time in timing.time_ns.items()},
        peak_bytes={side: each.peak_memory_bytes for side, each in row.sides.items()},
        counters={side: profile.counters for side, profile in profiles.items() if profile},
        metrics=_with_served(row.metrics, timing.serving.figures if timing.serving else {}),
        goal=timing.goal,
        ratio=_ratio(timing),
        joules={side: found.estimate for side, found in timing.joules.items()},
        errors={side: found.estimate for side, found in timing.figures.items() if timing.goal == ACCURACY},
    )
    return tuple(_terms(*predictions, measured, card, is_first))


def _with_served(
    metrics: Mapping[str, Mapping[str, ReportedMetric]], figures: Mapping[str, Mapping[str, Interval]]
) -> dict[str, dict[str, ReportedMetric]]:
    """What a workload reports, and what served requests saw, under the names that a prediction gives them; `tpot_ms` is its p50."""
    found = {side: dict(reported) for side, reported in metrics.items()}
    for side, seen in figures.items():
        for name, interval in seen.items():
            metric = ReportedMetric(
                value=interval.estimate, unit=unit_of(name), better="lower" if is_lower_better(name) else "higher", self_reported=False
            )
            found.setdefault(side, {}).update({name: metric, name.removesuffix(".p50"): metric})
    return found


def _ratio(timing: PairTiming) -> float | None:
    found = (timing.speedups if timing.goal == TIME else timing.gains).get(OPTIMIZED)
    return found.estimate if found else None


def _terms(
    predictions: Iterable[Prediction], guess: Guess | None, measured: Measured, card: Card | None, is_first: bool
) -> Iterator[PredictedTerm]:
    """Each prediction of this shape and GPU model beside its measurement, the ratios that follow from them, and the guess."""
    found: dict[tuple[str, str], tuple[Prediction, float]] = {}
    for prediction in predictions:
        if not (is_first if not prediction.shape else prediction.shape == measured.shape_name):
            continue
        model = prediction.model_for(measured.shape)
        if model and not is_model(measured.gpu, model):
            yield _term(prediction, measured, None, f"it is of the {model.upper()} alone")
        elif card is None and prediction.names - measured.shape.keys():
            yield _term(prediction, measured, None, f"no card of {measured.gpu} is kept: run `benchmark_cli peak`")
        else:
            value = prediction.value_at(measured.shape, card)
            found[prediction.side, prediction.figure] = (prediction, value)
            yield _term(prediction, measured, value)
    yield from _derived(found, measured)
    if guess:
        term = PredictedTerm(subject=SPEEDUP, shape=measured.shape_name, predicted=guess.value, measured=measured.ratio, unit="x")
        yield _compared(term.model_copy(update={"note": guess.note, "is_guess": True}))


def _term(prediction: Prediction, measured: Measured, value: float | None, why: str = "") -> PredictedTerm:
    subject = f"{prediction.side} {prediction.figure}".removesuffix(f" {TIME}")
    if prediction.is_counter:
        subject = f"counter {prediction.figure}" + ("" if prediction.side == OPTIMIZED else f" of {prediction.side}")
    seen, unit = measured.figure(prediction, prediction.side), prediction.unit
    if prediction.over:
        other, unit = measured.figure(prediction, prediction.over), f"x {prediction.over}"
        seen = seen / other if seen is not None and other else None
    term = PredictedTerm(subject=subject, shape=measured.shape_name, predicted=value, measured=seen, unit=unit, why=why)
    return _compared(term.model_copy(update={"note": prediction.note, "expression": prediction.expression}))


def _derived(found: Mapping[tuple[str, str], tuple[Prediction, float]], measured: Measured) -> Iterator[PredictedTerm]:
    """What follows for the ratio of two sides of which the same figure was predicted: a speedup, of times."""
    for (side, figure), (prediction, value) in found.items():
        base, base_value = found.get((BASELINE, figure), (prediction, 0.0))
        if side == BASELINE or not value or not base_value or prediction.over or base.over or prediction.is_counter:
            continue
        name = SPEEDUP if figure == TIME else f"{figure}, baseline over {side}"
        subject = f"{SPEEDUP} of {side}" if figure == TIME and side != OPTIMIZED else name
        seen, other = measured.figure(base, BASELINE), measured.figure(prediction, side)
        ratio = seen / other if seen is not None and other else None
        term = PredictedTerm(subject=subject, shape=measured.shape_name, predicted=base_value / value, measured=ratio, unit="x")
        yield _compared(term.model_copy(update={"expression": f"{BASELINE} / {side}"}))


def _compared(term: PredictedTerm) -> PredictedTerm:
    """The term with its ratio, and whether it missed."""
    if term.predicted is None or term.measured is None:
        return term
    ratio = term.measured / term.predicted if term.predicted else None
    is_far = max(ratio, 1 / ratio) > MISSED if ratio else term.predicted != term.measured
    return term.model_copy(update={"ratio": ratio, "missed": is_far})


def _in_unit(metric: ReportedMetric, unit: str) -> float | None:
    """A metric in seconds or bytes where it was predicted so, else as it is; None where its own unit is neither."""
    scales = {"s": SECONDS, "bytes": BYTES, "J": ENERGIES}.get(unit)
    if scales is None:
        return metric.value
    return metric.value * scales[metric.unit] if metric.unit in scales else None


def predicted_lines(row: PairResult) -> list[str]:
    """The terms of a row in plain words, one a line."""
    return [term_text(term) for terms in row.predictions.values() for term in terms]


def term_text(term: PredictedTerm) -> str:
    """A term in plain words: `optimized: predicted 1.09 ms, measured 1.54 ms, 1.41 times as much: missed`."""
    said = f"{term.subject}{at_shape(term.shape)}: {'guessed' if term.is_guess else 'predicted'}"
    if term.predicted is None:
        return f"{said} by `{term.expression}`, not compared: {term.why}" if term.expression else f"{said}, not compared: {term.why}"
    said += f" {_amount(term.predicted, term.unit)}"
    if term.measured is None:
        return f"{said}, not measured"
    said += f", measured {_amount(term.measured, term.unit)}"
    return f"{said}: {'missed' if term.missed else 'hit'}" + (
        f", {term.ratio:.2f} times what was predicted" if term.missed and term.ratio else ""
    )


def amount_of(value: float | None, unit: str) -> str:
    """A figure of a term in words; empty where there is none."""
    return "" if value is None else _amount(value, unit)


def _amount(value: float, unit: str) -> str:
    return ratio_text(value) if unit == "x" else amount_text(value, unit)
