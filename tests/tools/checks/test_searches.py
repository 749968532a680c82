"""Searches for kernels in a README: a line a record, and a record that is none is named."""

import json

import pytest

from common.python.errors import BenchmarkError
from tools.checks.searches import searches

ORIGIN = {"gpus": ["NVIDIA H200 GPU-1"], "commit": "0123456789abc", "date": "2026-11-29T00:00:00", "driver": "580.1"}


def an_attempt(number, threads, speedup, status="PASSED"):
    known = {"number": number, "parent": 0, "constants": {"THREADS": threads}, "status": status, "reason": ""}
    return known | {"speedup": speedup, "low": 0.99 * speedup, "high": 1.01 * speedup}


def a_search(*attempts, **changes):
    return {"target": "ch08:occupancy", "start": {"THREADS": 256}, "attempts": attempts, "origin": ORIGIN} | changes


@pytest.fixture
def script(tmp_path):
    return tmp_path / "ai_kernel_generator.py"


def keep(script, document):
    script.with_name("search_ch08_occupancy_h200.json").write_text(json.dumps(document))


def test_the_best_right_attempt_is_told_with_its_intervals(script):
    beside = {"estimate": 0.97, "low": 0.96, "high": 0.98}
    tried = an_attempt(1, 512, 1.8), an_attempt(2, 1024, 2.8), an_attempt(3, 2048, 90.0, "WRONG_RESULT")
    keep(script, a_search(*tried, beside_hand_written=beside))
    text = searches(script)
    assert "| `ch08:occupancy` | 3, 2 passed | THREADS 256 | THREADS 1024 | 2.80x [2.77, 2.83] | 0.970x [0.960, 0.980] |" in text
    assert text.endswith("Measured with NVIDIA H200, driver 580.1, commit 0123456789, 2026-11-29.")


def test_a_gain_that_may_be_noise_is_none(script):
    keep(script, a_search(an_attempt(1, 512, 1.005)))
    assert "| 1, 1 passed | THREADS 256 | no other is faster |  |  |" in searches(script)


def test_without_a_record_nothing_is_claimed(script):
    assert searches(script) == "Not measured yet."


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ([], "the file: Input should be an object; expected an attempts.json of ai_kernel_generator.py"),
        (a_search({"number": 1}), "attempts.0.constants: Field required; expected an attempts.json"),
        (a_search(origin={"gpus": []}), "found a search that ran on no GPU"),
    ],
)
def test_what_is_no_record_of_a_gpu_is_named(script, document, told):
    keep(script, document)
    with pytest.raises(BenchmarkError, match=f"search_ch08_occupancy_h200.json: {told}"):
        searches(script)
