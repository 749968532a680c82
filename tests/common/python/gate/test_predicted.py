"""Every term of a prediction is held against its own measurement, so that two errors which cancel in the ratio are both told."""

import pytest

from common.python.errors import BenchmarkError
from common.python.gate import predicted
from common.python.gate.expectations import keep_expectations
from common.python.gate.predicted import card_from, predicted_for, predicted_lines, term_text, terms_of, terms_of_timing
from common.python.pairs.discovery import Pair
from common.python.pairs.predictions import Card, Constant, predictions_of
from common.python.results import PredictedTerm, ReportedMetric, SideProfile
from tests.support.factories import a_provenance, a_row, a_side, a_timing, an_expectation
from tests.support.synthetic_ceilings import FLOPS, RATES, a_ceiling, synthetic_ceilings

CARD = Card("h200", "NVIDIA H200", "1", "2026-01-02", {"dram_copy": Constant(4e12, "bytes/s", "measured", "a copy")})
WORKLOAD = '"""X."""\nWORKLOAD = Workload(time_at={"wide": {"n": 1024}, "deep": {"n": 2048}})\n'


@pytest.fixture
def pair(tmp_path):
    """A pair whose optimized side predicts the lines that a test gives."""
    sides = {side: tmp_path / f"{side}_x.cu" for side in ("baseline", "optimized")}

    def write(*lines, workload=WORKLOAD):
        (tmp_path / "workload_x.py").write_text(workload)
        sides["baseline"].write_text("// Baseline.\n")
        sides["optimized"].write_text("\n".join(["// Idea.", *(f"// {line}" for line in lines)]))
        return Pair("ch07:x", "ch07", "x", tmp_path / "workload_x.py", sides)

    return write


def terms(pair, row=None, name="default", gpu="NVIDIA H200", card=CARD):
    """The terms of a row, by subject."""
    found = terms_of_timing(row or a_row(), name, predictions_of(pair.workload, pair.sides), gpu, card)
    return {term.subject: term for term in found}


def test_two_errors_that_cancel_are_both_missed_while_the_ratio_hits(pair):
    """84.7 and 36.7 us were measured: a ratio of 2.31, as of the 42.4 and 18.4 us that were predicted."""
    found = terms(pair("predicts: baseline 42.4 us = 42.4e-6", "predicts: optimized 18.4 us = 18.4e-6  (one pass)"))
    assert list(found) == ["baseline", "optimized", "speedup"]
    assert (found["baseline"].missed, found["optimized"].missed, found["speedup"].missed) == (True, True, False)
    assert found["optimized"].measured == pytest.approx(36.7e-6)
    assert found["optimized"].ratio == pytest.approx(36.7 / 18.4)
    assert (found["optimized"].unit, found["optimized"].note) == ("s", "one pass")
    assert (found["speedup"].unit, found["speedup"].ratio) == ("x", pytest.approx(1, abs=0.01))


def test_a_term_misses_by_more_than_a_quarter_either_way(pair):
    for value, missed in ((36.7 / 1.24, False), (36.7 / 1.26, True), (36.7 * 1.24, False), (36.7 * 1.26, True)):
        found = terms(pair(f"predicts: optimized {value} us = {value} * 1e-6"))
        assert (found["optimized"].missed, "speedup" in found) == (missed, False)


def test_an_equation_takes_the_card_and_the_entries_of_the_timed_shape(pair):
    found = terms(pair("predicts: optimized 1 s = n * 4 / dram_copy"))  # of 1024: what is written is of another shape
    assert found["optimized"].predicted == pytest.approx(1024 * 4 / 4e12)


def test_a_literal_time_is_compared_on_its_own_model_alone(pair):
    lines = ("predicts: baseline 84 us on h200", "predicts: optimized 36 us = 36e-6")
    assert [term.predicted for term in terms(pair(*lines)).values()] == pytest.approx([84e-6, 36e-6, 84 / 36])
    elsewhere = terms(pair(*lines), gpu="NVIDIA H100 80GB HBM3")
    assert list(elsewhere) == ["baseline", "optimized"]
    assert {(term.predicted, term.missed, term.why) for term in elsewhere.values()} == {(None, False, "it is of the H200 alone")}
    assert term_text(elsewhere["optimized"]) == "optimized: predicted by `36e-6`, not compared: it is of the H200 alone"


def test_without_a_card_only_what_needs_none_is_compared(pair):
    lines = ("predicts: optimized 1 s = n / dram_copy", "predicts: optimized peak_bytes 3 MiB = 3 * 1024 * n")
    found = terms(pair(*lines), gpu="NVIDIA Test", card=None)
    assert found["optimized"].predicted is None
    assert "no card of NVIDIA Test" in found["optimized"].why
    assert (found["optimized peak_bytes"].ratio, found["optimized peak_bytes"].unit) == (1.0, "bytes")


def test_counters_are_those_of_the_profile_where_one_ran(pair):
    lines = ("predicts: counter a.sum = 0.125 x baseline", "predicts: counter a.sum 8e3 = 8 * n", "predicts: counter b.sum baseline 0 = 0")
    sides = {
        "baseline": a_side("baseline", profile=SideProfile(counters={"a.sum": 64e3, "b.sum": 5.0})),
        "optimized": a_side(profile=SideProfile(counters={"a.sum": 16e3})),
    }
    relative, absolute, none = terms_of_timing(
        a_row(sides=sides), "default", predictions_of((given := pair(*lines)).workload, given.sides), "NVIDIA H200", CARD
    )
    assert (relative.predicted, relative.measured, relative.unit, relative.missed) == (0.125, 0.25, "x baseline", True)
    assert (absolute.predicted, absolute.measured, absolute.missed) == (8192, 16e3, True)
    assert (none.subject, none.measured, none.ratio, none.missed) == ("counter b.sum of baseline", 5.0, None, True)
    unprofiled = terms(pair(lines[0]))["counter a.sum"]
    assert (unprofiled.measured, unprofiled.missed) == (None, False)
    assert term_text(unprofiled) == "counter a.sum: predicted 0.125 x baseline, not measured"


def test_a_metric_is_compared_in_the_unit_that_it_was_predicted_in(pair):
    metrics = {"optimized": {"ttft.p95": ReportedMetric(value=12.0, unit="ms", better="lower")}}
    row = a_row(metrics=metrics)
    in_seconds = terms(pair("predicts: optimized ttft.p95 11 ms = 11e-3"), row)["optimized ttft.p95"]
    assert (in_seconds.measured, in_seconds.unit) == (pytest.approx(12e-3), "s")
    as_it_is = terms(pair("predicts: optimized ttft.p95 11 = 11"), row)["optimized ttft.p95"]
    assert (as_it_is.measured, as_it_is.unit) == (12.0, "")
    assert terms(pair("predicts: optimized ttft.p95 11 MB = 11e6"), row)["optimized ttft.p95"].measured is None


def test_the_steps_of_a_ladder_have_speedups_of_their_own(pair):
    row = a_row(timings={"default": a_timing({"baseline": 80_000.0, "walk": 40_000.0, "optimized": 20_000.0})})
    found = terms(pair("predicts: baseline 80 us = 80e-6", "predicts: walk 40 us = 40e-6"), row)
    assert (found["speedup of walk"].predicted, found["speedup of walk"].measured) == (pytest.approx(2), pytest.approx(2))


def test_a_guess_is_told_as_a_guess(pair):
    found = terms(pair("guess: 1.2x, the host may overlap"))["speedup"]
    assert (found.is_guess, found.predicted, found.missed, found.note) == (True, 1.2, True, "the host may overlap")
    assert term_text(found) == "speedup: guessed 1.2x, measured 2.31x: missed, 1.92 times what was predicted"


def test_a_line_is_of_the_first_timed_shape_unless_it_names_another(pair):
    given = pair("predicts: optimized 36 us = 36e-6", "predicts@deep: optimized 72 us = 72e-6")
    row = a_row(timings={"wide": a_timing(), "deep": a_timing()})
    assert terms(given, row, "wide")["optimized"].predicted == pytest.approx(36e-6)
    assert terms(given, row, "deep")["optimized"].predicted == pytest.approx(72e-6)
    assert terms(given, row, "deep")["optimized"].shape == "deep"


def test_a_row_says_its_terms_in_plain_words(pair):
    row = a_row(timings={"wide": a_timing(), "deep": a_timing()})
    given = pair("predicts: optimized 36 us = 36e-6", "predicts@deep: optimized 72 us = 72e-6")
    found = predictions_of(given.workload, given.sides)
    row = row.model_copy(update={"predictions": {name: terms_of_timing(row, name, found, "NVIDIA H200", CARD) for name in row.timings}})
    assert predicted_lines(row) == [
        "optimized @wide: predicted 36 µs, measured 36.7 µs: hit",
        "optimized @deep: predicted 72 µs, measured 36.7 µs: missed, 0.51 times what was predicted",
    ]
    assert predicted_lines(a_row()) == []


def test_a_committed_expectation_is_enough(pair, monkeypatch):
    """What is expected of these units is 80 us against 40."""
    given = pair("predicts: baseline 80 us = 80e-6", "predicts@deep: optimized 20 us = n * 4 / dram_copy + 20e-6")
    monkeypatch.setattr(predicted, "card_for", lambda gpu: CARD)
    wide, deep = (an_expectation(2.0, shape={"n": n}, provenance=a_provenance(gpu="NVIDIA H200", run_id=str(n))) for n in (1024, 2048))
    keep_expectations(given.workload.with_name("expectations_h200.json"), "x", {"wide": wide, "deep": deep})
    (baseline,) = terms_of(given, wide)
    assert (baseline.subject, baseline.shape, baseline.missed) == ("baseline", "wide", False)
    (optimized,) = terms_of(given, deep)
    assert (optimized.shape, optimized.missed, optimized.ratio) == ("deep", True, pytest.approx(2, rel=0.02))
    assert predicted_for(given.workload, given.sides, None, deep, "deep")[0].predicted is None


def test_a_workload_that_does_not_write_its_shapes_out_has_those_that_are_filed(pair):
    given = pair("predicts: baseline 80 us = 80e-6 on h200", workload='"""X."""\nfrom other import WORKLOAD\n')
    filed = {name: an_expectation(2.0, provenance=a_provenance(gpu="NVIDIA H200", run_id=name)) for name in ("large", "small")}
    keep_expectations(given.workload.with_name("expectations_h200.json"), "x", filed)
    assert [term.shape for term in terms_of(given, filed["large"])] == ["large"]
    assert terms_of(given, filed["small"]) == []


def test_a_side_that_the_pair_has_not_is_named(pair):
    given = pair("predicts: walk 80 us = 80e-6")
    with pytest.raises(BenchmarkError, match=r"optimized_x.cu:2: found the side 'walk'; expected one of baseline, optimized"):
        terms_of(given, an_expectation())


def test_a_card_holds_bursts_alone_with_a_clean_l2_and_the_rate_of_multiply_adds(pair):
    ceilings = synthetic_ceilings()
    others = (a_ceiling("bf16", 1.0, "flop/s", mode="sustained"), a_ceiling("dram_read", 1.0, "bytes/s", l2="dirty"))
    card = card_from(ceilings.model_copy(update={"ceilings": (*ceilings.ceilings, *others)}))
    assert card.values["dram_read"] == RATES["dram_read"]
    assert card.values["bf16"] == FLOPS["bf16"]
    assert (card.values["l2"], card.values["fp32"], card.values["fp32_matmul"]) == (RATES["l2_read"], FLOPS["fp32_fma"], FLOPS["fp32"])
    assert not {"l2_read", "fp32_fma", "storage_read", "peer_out"} & card.values.keys()
    assert {name for name, constant in card.constants.items() if constant.kind == "chip fact"} == {"l2_bytes", "sm_clock", "warp", "sector"}


def test_a_miss_compares_two_figures():
    with pytest.raises(ValueError, match="a miss compares two figures"):
        PredictedTerm(subject="optimized", shape="default", predicted=1.0, measured=None, unit="s", missed=True)
