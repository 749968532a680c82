"""The script that shows what a cache's format costs says how many bytes a token takes, and refuses what it cannot draw."""

import re
import subprocess
import sys

import pytest

from tests.support.teeth import ROOT


def ran(*arguments):
    command = [sys.executable, ROOT / "ch19" / "dynamic_quantized_cache.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


# Rounding to 3 bits of mantissa is off by 2.6 % of a value; to 15 steps of a row, by 0.29 steps of about 0.4 of its deviation.
@pytest.mark.parametrize(("precision", "size", "least", "most"), [("fp8", 132, 0.02, 0.03), ("int4", 68, 0.09, 0.14)])
def test_each_sample_says_what_a_format_costs(precision, size, least, most):
    lines = ran("--samples", "2", "--target-precision", precision).stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        assert f"{precision}, {size} bytes per token" in line
        assert least < float(re.search(r"error ([\d.]+)", line).group(1)) < most


def test_no_samples_are_an_error():
    assert "--samples: found 0; expected at least 1" in ran("--samples", "0").stderr
