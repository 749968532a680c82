"""Serving rows end to end on a CPU: honest sides pass with figures, every cheat gets its status for the right reason."""

import json
from pathlib import Path

import pytest

from common.python.metrics_extractor import figures_of
from common.python.results import PairResult
from tests.support.commands import benchmark_here

HERE = Path(__file__).parent

# What becomes of each variant of the toy, and words of its reason.
CHEATS = {
    "before_arrival": ("WRONG_RESULT", "before poll or wait gave it"),
    "guess": ("WRONG_RESULT", "token 1 of"),
    "late_tokens": ("WRONG_RESULT", "token 1 of"),
    "repeated": ("WRONG_RESULT", "token 2 of"),
    "dropped": ("WRONG_RESULT", "request 3 got 0 tokens by the end of the step"),
    "one_too_many": ("WRONG_RESULT", "after which emit had said that it is complete"),
    "anothers_cache": ("WRONG_RESULT", "request 1, token 1 of"),
    "stale_block": ("WRONG_RESULT", "a probed logit is off by"),
    "remembered": ("WRONG_RESULT", "a probed logit is off by"),
    "no_logits": ("WRONG_RESULT", "its logit lies 0 below the largest and a probed logit is off by"),
    "scaled_weights": ("INPUT_MODIFIED", "the weights are not those that the seed makes"),
}
HONEST = ("two_a_call", "prefix_cache")  # of the shape of one_too_many, and of remembered and anothers_cache

# What only a GPU can tell, on which these run.
ON_GPU = {"stream_ahead": ("WRONG_RESULT", "token 1 of"), "stream_joined": ("PASSED", "")}


def rows_of(folder, *arguments):
    """The rows of a command over the toy's folder, by target, and its exit code."""
    done = benchmark_here(*arguments, "--root", HERE, "--artifacts-dir", folder / "run", scratch=folder)
    document = json.loads((folder / "run/metrics.json").read_text())
    return {row["target"].removeprefix("toy:"): PairResult.model_validate(row) for row in document["rows"]}, done


def test_both_sides_of_the_toy_are_right(tmp_path):
    rows, done = rows_of(tmp_path, "verify", "--targets", "toy:toy")
    assert done.code == 0, done
    (row,) = rows.values()
    assert row.status == "PASSED"
    checks = row.sides["optimized"].checks
    assert len(checks) == 6  # two traces at each of two check shapes and at the one that is timed
    assert all(check.outputs["logits"].max_abs < 1e-4 and check.outputs["tokens"].mismatched == 0 for check in checks)


@pytest.fixture(scope="module")
def verified(tmp_path_factory):
    # One seed: a wrong token is the right one for one seed in 64, the size of the vocabulary, and is then found a token later.
    return rows_of(tmp_path_factory.mktemp("verified"), "verify", "--targets", "toy", "--seed", "1")[0]


@pytest.mark.slow
@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_gets_its_status(cheat, verified):
    status, words = CHEATS[cheat]
    row = verified[f"toy_{cheat}"]
    assert row.status == status, row.reason
    assert words in row.reason
    assert f"optimized_toy_{cheat}.py" in row.reason


@pytest.mark.slow
@pytest.mark.parametrize("side", HONEST)
def test_an_honest_side_of_a_cheats_shape_passes(side, verified):
    assert verified[f"toy_{side}"].status == "PASSED", verified[f"toy_{side}"].reason


@pytest.mark.slow
def test_every_variant_of_the_toy_is_a_cheat_or_honest(verified):
    assert verified.keys() == {"toy", *(f"toy_{name}" for name in (*CHEATS, *HONEST, *ON_GPU))}
    assert {verified[f"toy_{name}"].status for name in ON_GPU} == {"SKIPPED"}


@pytest.mark.slow
def test_static_against_continuous_batches_in_figures(tmp_path):
    rows, done = rows_of(tmp_path, "run", "--targets", "toy:toy", "--iterations", "1")
    assert done.code == 0, done
    row = rows["toy"]
    timing = row.timings["cpu"]
    assert (timing.goal, timing.clock, timing.serving.offered_per_s) == ("output_tokens_per_s", "host", None)
    assert timing.gains["optimized"].high > 1.0  # a toy on a busy machine
    first = timing.units[0].blocks
    assert [block.seed for block in first["baseline"]] == [block.seed for block in first["optimized"]]
    for before, after in zip(*(first[side][0].requests for side in ("baseline", "optimized")), strict=True):
        assert (before.prompt_tokens, len(before.tokens_us)) == (after.prompt_tokens, len(after.tokens_us))
    assert {block.seed for unit in timing.units for block in unit.blocks["baseline"]}.__len__() == 2 * len(timing.units)
    assert row.metrics["optimized"]["batch"].value > row.metrics["baseline"]["batch"].value
    names = {figure["name"] for figure in figures_of(row)}
    assert {"ttft_ms.p95", "tpot_ms.p50", "goodput", "change of ttft_ms.p50", "change of batch"} <= names
    assert "ttft_ms.p99" not in names  # 32 requests a process
    assert "TTFT p50 / p95" in done.stdout


@pytest.mark.slow
def test_a_load_is_a_share_of_the_baselines_saturation(tmp_path):
    rows, done = rows_of(tmp_path, "run", "--targets", "toy:toy", "--iterations", "1", "--kwargs", "arrival_poisson=0.5")
    assert done.code == 0, done
    serving = rows["toy"].timings["cpu"].serving
    assert serving.offered_per_s == pytest.approx(0.5 * serving.saturation_per_s)
    gaps = [
        after.due_us - before.due_us
        for unit in rows["toy"].timings["cpu"].units
        for block in unit.blocks["baseline"]
        for before, after in zip(block.requests, block.requests[1:], strict=False)
    ]
    assert sum(gaps) / len(gaps) == pytest.approx(1e6 / serving.offered_per_s, rel=0.35)


@pytest.mark.slow
def test_a_sweep_of_loads_is_one_table_over_one_saturation(tmp_path):
    loads = (0.5, 0.8, 1.1)
    swept = f"arrival_poisson={','.join(map(str, loads))}"
    rows, done = rows_of(tmp_path, "run", "--targets", "toy:toy", "--iterations", "1", "--sweep", swept)
    assert done.code == 0, done
    told = [timing.serving for timing in rows["toy"].timings.values()]
    assert len({serving.saturation_per_s for serving in told}) == 1
    assert [serving.offered_per_s / serving.saturation_per_s for serving in told] == pytest.approx(loads)
    untimed = [check for check in rows["toy"].sides["baseline"].checks if not check.timed_call]
    assert sum("arrival_poisson" in check.shape and check.shape["arrival_poisson"] > 0 for check in untimed) == 2  # not two a load
    for text in (done.stdout, (tmp_path / "run/report.md").read_text()):
        (heads,) = (line for line in text.splitlines() if "TTFT p50 / p95 ms" in line)
        assert all(title in heads for title in ("TPOT p50 / p95 ms", "tokens/s", "goodput"))
        lines = [line for line in text.splitlines() if any(f"{load:g} of " in line for load in loads)]
        assert len(lines) == 2 * len(loads)  # a line a side and load
        assert all(line.rstrip(" |").endswith(tuple("0123456789%")) for line in lines)


def a_tree(folder, **changes):
    """A copy of the toy alone, with a text of some of its files replaced by another: `workload=(before, after)`."""
    for name in ("workload_toy", "shared_toy", "baseline_toy", "optimized_toy"):
        text = (HERE / "toy" / f"{name}.py").read_text()
        before, after = changes.pop(name.partition("_")[0], ("", ""))
        assert before in text
        (folder / "root/toy").mkdir(parents=True, exist_ok=True)
        (folder / f"root/toy/{name}.py").write_text(text.replace(before, after) if before else text)
    assert not changes
    return folder / "root"


ENDS = {
    "a bound that refuses nothing": ({"workload": ("atol=1e-3", "atol=20.0")}, "UNPROVEN", "expected 99%, with a smaller atol"),
    "a side that raises": ({"optimized": ("tokens = rows.argmax(-1)", "tokens = rows.argmax(-7)")}, "CRASHED", "raised IndexError"),
    "a side that never ends": (
        {"optimized": ("        report_batch(", "        while True:\n            arrivals.poll()\n        report_batch(")},
        "TIMEOUT",
        "serve took more than",
    ),
    "another model": (
        {"workload": ("    return torch.cat(rows)", "    return torch.cat(rows).double()")},
        "CRASHED",
        "logits returned torch.float64",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_what_goes_wrong_costs_the_row_alone(end, tmp_path):
    changes, status, words = ENDS[end]
    root = a_tree(tmp_path, **changes)
    arguments = ("verify", "--root", root, "--targets", "toy:toy", "--timeout-multiplier", "0.04", "--artifacts-dir", tmp_path / "run")
    benchmark_here(*arguments, scratch=tmp_path)
    (row,) = json.loads((tmp_path / "run/metrics.json").read_text())["rows"]
    assert row["status"] == status, row["reason"]
    assert words in row["reason"]


def test_a_tensor_that_is_no_constant_is_an_error_up_front(tmp_path):
    root = a_tree(tmp_path, workload=('constants=("weights",)', "constants=()"))
    done = benchmark_here("verify", "--root", root, "--targets", "toy:toy", scratch=tmp_path)
    assert "weights.mix is a tensor and not among the constants" in done.error


def test_a_load_beyond_saturation_is_an_error_up_front_where_a_latency_is_the_goal(tmp_path):
    root = a_tree(tmp_path, workload=('goal="output_tokens_per_s"', 'goal="ttft_ms.p95"'))
    workload = root / "toy/workload_toy.py"
    workload.write_text(workload.read_text().replace('"longest": 64, "arrival_poisson": 0.0', '"longest": 64, "arrival_poisson": 1.5'))
    done = benchmark_here("run", "--root", root, "--targets", "toy:toy", scratch=tmp_path)
    assert "found arrivals at 1.5 of saturation and goal='ttft_ms.p95'; expected at most 1.0" in done.error


@pytest.mark.slow
def test_a_latency_is_shown_in_its_unit(tmp_path):
    root = a_tree(tmp_path, workload=('goal="output_tokens_per_s"', 'goal="ttft_ms.p95"'))
    arguments = ("run", "--root", root, "--targets", "toy:toy", "--iterations", "1", "--artifacts-dir", tmp_path / "run")
    done = benchmark_here(*arguments, scratch=tmp_path)
    assert done.code == 0, done
    (row,) = json.loads((tmp_path / "run/metrics.json").read_text())["rows"]
    timing = row["timings"]["cpu"]
    assert timing["unit"] == "ms"
    for side, figures in timing["serving"]["figures"].items():
        assert timing["figures"][side] == figures["ttft_ms.p95"]
    baseline, optimized = (timing["figures"][side]["estimate"] for side in ("baseline", "optimized"))
    assert timing["gains"]["optimized"]["estimate"] == pytest.approx(baseline / optimized)


def test_a_cold_start_is_about_steps(tmp_path):
    rows, done = rows_of(tmp_path, "run", "--targets", "toy:toy", "--cold-start")
    assert (rows["toy"].status, done.code) == ("SKIPPED", 5)
    assert rows["toy"].reason == "--cold-start is about steps, and a step of this row serves a trace of requests"
