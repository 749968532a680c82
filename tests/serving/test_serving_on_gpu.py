"""Serving rows on a GPU: nothing waits for it in emit, and what the client reads is what the stream had computed."""

import json
import threading
import time

import pytest
import torch

from common.python.child.serving.client import _Replay
from common.python.child.serving.line import Line
from common.python.child.serving.ring import Ring, Sizes
from common.python.pairs.traces import Planned
from common.python.results import PairResult
from tests.serving.test_serving_rows import CHEATS, HERE, HONEST, ON_GPU
from tests.support.commands import benchmark

pytestmark = [pytest.mark.gpu, pytest.mark.slow]

SLEEP_CYCLES = 1_000_000_000  # half a second at the clocks of an H100


@pytest.fixture(scope="module")
def verified(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verified")
    benchmark("verify", "--root", HERE, "--targets", "toy", "--device", "cuda", "--artifacts-dir", folder / "run", scratch=folder)
    rows = json.loads((folder / "run/metrics.json").read_text())["rows"]
    return {row["target"].removeprefix("toy:"): PairResult.model_validate(row) for row in rows}


@pytest.mark.unused_gpu
@pytest.mark.parametrize("cheat", [*CHEATS, "stream_ahead"])
def test_a_cheat_gets_its_status_on_a_gpu(cheat, verified):
    status, words = (CHEATS | ON_GPU)[cheat]
    row = verified[f"toy_{cheat}"]
    assert row.status == status, row.reason
    assert words in row.reason


@pytest.mark.unused_gpu
@pytest.mark.parametrize("side", [*HONEST, "stream_joined"])
def test_an_honest_side_passes_on_a_gpu(side, verified):
    assert verified[f"toy_{side}"].status == "PASSED", verified[f"toy_{side}"].reason


@pytest.mark.unused_gpu
def test_a_row_is_timed_on_a_gpu(tmp_path):
    begin = time.monotonic()
    done = benchmark(
        "run", "--root", HERE, "--targets", "toy:toy", "--device", "cuda", "--artifacts-dir", tmp_path / "run", scratch=tmp_path
    )
    assert done.code == 0, done
    assert time.monotonic() - begin < 120
    (row,) = json.loads((tmp_path / "run/metrics.json").read_text())["rows"]
    timing = row["timings"]["default"]
    assert timing["gains"]["optimized"]["low"] > 1.0
    assert row["sides"]["optimized"]["peak_memory_bytes"] > 0


def test_emit_waits_for_nothing_and_a_stamp_for_the_stream(tmp_path):
    trace = (Planned(0.0, (1,), 1),)
    ring = Ring.create(tmp_path / "ring", Sizes.of(trace, 2))
    ring.arrays["columns"][:] = [0, 9]
    replay, line, took = _Replay(ring, trace, most_tokens=4), Line(10, torch.device("cuda"), "optimized_x.py"), []
    token, row = torch.zeros(1, dtype=torch.int64, device="cuda"), torch.arange(10.0, device="cuda")[None]
    torch.cuda.synchronize()

    def step():
        requests = line.wait()
        torch.cuda._sleep(SLEEP_CYCLES)
        token.fill_(7)
        begin = time.monotonic()
        assert line.emit(requests, token, row) == {0}
        took.append(time.monotonic() - begin)
        token.fill_(3)

    client = threading.Thread(target=replay.run, args=(60.0, 1e-5))
    client.start()
    line.run(step, tmp_path / "ring")
    client.join()
    answer = replay.answer_of(0)
    assert (answer.tokens, answer.probed) == ([7], [[0.0, 9.0]])
    assert took[0] < 0.1
    assert replay.requests()[0].tokens_us[0] > 200_000
