"""The gate on a GPU: a pair that is accepted there is the same a second time, and red once its optimized side takes 3 % longer."""

import json
import shutil

import pytest

from tests.support.commands import ROOT, benchmark
from tests.support.probes import needs_nvcc

SPIN = """
__global__ void spin(int cycles) {
    for (const long long end = clock64() + cycles; clock64() < end;) {
    }
}

LAUNCH("""
CYCLES = 5400  # 2.8 us at 1.95 GHz, and some more to begin it: 3 % of the 128 us that ch07:copy takes on an H200


@pytest.mark.gpu
@pytest.mark.unused_gpu
@needs_nvcc
def test_three_percent_more_is_red_and_nothing_else_is(tmp_path):
    folder = tmp_path / "root" / "ch07"
    folder.mkdir(parents=True)
    for name in ("workload_copy.py", "baseline_copy.cu", "optimized_copy.cu"):
        shutil.copy(ROOT / "ch07" / name, folder)

    def run(name, *choices):
        where = ["--root", tmp_path / "root", "--artifacts-dir", tmp_path / name]
        finished = benchmark("run", *where, *choices, scratch=tmp_path)
        (row,) = json.loads((tmp_path / name / "metrics.json").read_text())["rows"]
        return finished.code, row["verdicts"]["default"]

    code, verdict = run("accepted", "--accept-regressions", "--gate", "1")
    assert (code, verdict["accepted"]) == (0, True), verdict
    code, verdict = run("again")
    assert (code, verdict["kind"]) == (0, "SAME"), verdict

    side = folder / "optimized_copy.cu"
    text = side.read_text().replace("\nLAUNCH(", SPIN, 1)
    side.write_text(
        text.replace("    return cudaGetLastError();", f"    spin<<<1, 1, 0, stream>>>({CYCLES});\n    return cudaGetLastError();")
    )
    code, verdict = run("slower")
    assert (code, verdict["kind"], verdict["confirmed"]) == (2, "REGRESSED", True), verdict
    assert -5.0 < verdict["changes"]["speedup"]["percent"]["estimate"] < -2.0
