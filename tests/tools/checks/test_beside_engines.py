"""An engine beside another's in a README: a line a comparison, and a record that is none is named."""

import json

import pytest

from common.python.errors import BenchmarkError
from tools.checks.beside_engines import beside

ORIGIN = {"commit": "0123456789abc", "date": "2026-11-29T00:00:00", "driver": "580.1"}


def an_engine(name, tokens_per_s, wrong=0):
    return {"engine": name, "at_once": 16, "settings": {"cudnn": False}, "tokens_per_s": tokens_per_s, "wrong_tokens": wrong}


def a_record(**changes):
    compared = {"ours_at_once": 16, "engine": "theirs", "at_once": 16, "ratio": 1.5, "low": 1.4, "high": 1.6, "same_answers": 0.93}
    known = {"hardware": "NVIDIA H200", "dtype": "bfloat16", "shape": {"width": 16}, "versions": {"torch": "2.11.0"}}
    known |= {"engines": [an_engine("ours", 1500.0), an_engine("theirs", 1000.0)], "rounds": [{}, {}], "compared": [compared]}
    return known | {"origin": ORIGIN} | changes


@pytest.fixture
def script(tmp_path):
    return tmp_path / "beside_theirs.py"


def keep(script, document):
    script.with_name("beside_theirs_h200.json").write_text(json.dumps(document))


def test_a_comparison_is_told_with_its_interval(script):
    keep(script, a_record())
    text = beside(script)
    assert "| 16 | theirs, 16 | 1.50x [1.40, 1.60] | 1500 | 1000 | 93 % |" in text
    assert text.endswith("NVIDIA H200, driver 580.1, torch 2.11.0, bfloat16, 2 traces, commit 0123456789, 2026-11-29.")


def test_without_a_record_nothing_is_claimed(script):
    assert beside(script) == "Not measured yet."


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ([], "the file: Input should be an object; expected what beside_theirs.py --json writes"),
        (a_record(origin=None), "origin: Input should be an object"),
        (a_record(engines=[an_engine("ours", 1500.0, wrong=2)]), "found 2 wrong tokens; expected none"),
    ],
)
def test_what_is_no_record_is_named(script, document, told):
    keep(script, document)
    with pytest.raises(BenchmarkError, match=f"beside_theirs_h200.json: {told}"):
        beside(script)
