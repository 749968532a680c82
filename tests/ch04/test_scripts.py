"""The scripts, as torchrun starts them with gloo: their answers are right, and layouts of the same batches train alike."""

import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT

CHAPTER = PROJECT_ROOT / "ch04"
suite = import_file(CHAPTER / "bandwidth_benchmark_suite_8gpu.py")
TINY = ("--steps=12", "--layers=1", "--width=64", "--batch=4", "--context=32", "--bound=5.5", "--corpus=common/models")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def started(ranks, script, *arguments, status=0):
    """What the script prints in so many processes."""
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", str(CHAPTER / script), *arguments]
    environment = os.environ | {"PYTHONPATH": f"{PROJECT_ROOT}{os.pathsep}{CHAPTER}", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(words, cwd=PROJECT_ROOT, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == status, done.stderr[-3000:]
    return done.stdout + done.stderr


def losses_of(out):
    return re.search(r"loss (\S+) at step 1, as in one process; (\S+) over the last", out).groups()


@pytest.mark.parametrize(
    ("name", "ranks", "busbw"),
    [
        *(("all_reduce", 2, 1.0), ("all_reduce", 8, 1.75), ("all_gather", 2, 0.5), ("reduce_scatter", 8, 0.875), ("broadcast", 8, 1.0)),
        *(("one_shot_all_reduce", 8, 1.75), ("two_shot_all_reduce", 4, 1.5), ("pushed_all_gather", 8, 0.875)),
    ],
)
def test_bandwidths_are_those_of_nccl_tests(name, ranks, busbw):
    found = suite.figures(name, ranks, size=10**9, rounds=[4.0, 1.0, 0.5])
    assert (found["algbw"], found["busbw"], found["us"]) == (1.0, busbw, 1e6)
    assert (found["busbw_min"], found["busbw_max"]) == (busbw / 4, busbw * 2)


@pytest.mark.parametrize("ranks", [2, 4])
def test_bandwidth_suite(ranks, tmp_path):
    out = started(
        ranks,
        "bandwidth_benchmark_suite_8gpu.py",
        "--full",
        "--calls=1",
        "--max-bytes=16384",
        f"--json={tmp_path / 'rows.json'}",
        f"--plot={tmp_path / 'rows.svg'}",
    )
    found = json.loads((tmp_path / "rows.json").read_text())
    assert found["ranks"] == ranks
    assert [(row["collective"], row["bytes"]) for row in found["rows"]] == [
        (name, size) for name in suite.FACTORS for size in (4096, 16384)
    ]
    assert not any(row["wrong"] for row in found["rows"])
    assert out.count("right") == len(found["rows"])
    assert found["backend"] == "gloo"
    assert all(row["busbw_min"] <= row["busbw"] <= row["busbw_max"] for row in found["rows"])
    assert len(ET.parse(tmp_path / "rows.svg").findall("{*}polyline")) == 5


SPOILED = """
import runpy

import shared_peer_collectives

{change}
runpy.run_path("{folder}/bandwidth_benchmark_suite_8gpu.py", run_name="__main__")
"""
ONLY_MINE = "shared_peer_collectives.{}.all_reduce = lambda memory, mine, total, *_: total.copy_(mine)"
WRONG = {
    "one_shot_all_reduce": ONLY_MINE.format("one_shot"),
    "two_shot_all_reduce": ONLY_MINE.format("two_shot"),
    "pushed_all_gather": "shared_peer_collectives.range = lambda *ends: range(*ends) if ends[1:] else range(ends[0] - 1)",  # a copy too few
}


def test_bandwidth_suite_sees_wrong_answers(tmp_path):
    script = tmp_path / "spoiled.py"
    script.write_text(SPOILED.format(folder=CHAPTER, change="\n".join(WRONG.values())))
    out = started(2, script, "--calls=1", "--max-bytes=4096", status=1)
    assert re.findall(r"(\w+) .* WRONG", out) == list(WRONG)


def test_bandwidth_suite_leaves_out_peers_that_it_cannot_address():
    of_hosts = {hosts: SimpleNamespace(ranks=4, local_ranks=4 // hosts, on_gpu=False) for hosts in (1, 2)}
    assert suite.reach_each_other(of_hosts[1])
    assert not suite.reach_each_other(of_hosts[2])


NCCL_TESTS = """\
# Collective test starting: all_reduce_perf
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        4096          1024     float     sum      -1    10.00    0.41    0.41      0    10.00    0.41    0.50      0
       65536         16384     float     sum      -1    12.00    5.46    5.46      0    10.00    6.55    8.00      0
# Avg bus bandwidth    : 5.355
"""


@pytest.mark.parametrize(("ours", "close"), [(8.2, True), (7.8, True), (8.3, False), (7.7, False), (5.46, False)])
def test_the_largest_all_reduce_is_held_to_nccl_tests(ours, close):
    rows = [{"collective": "all_reduce", "bytes": size, "busbw": busbw} for size, busbw in ((4096, 9.0), (65536, ours), (1 << 30, 1.0))]
    words, found = suite.compared(rows, suite.busbw_of(NCCL_TESTS, "perf.txt"))
    assert found is close
    assert f"65536 bytes: busbw {ours:.2f}, nccl-tests 8.00" in words


def test_what_is_not_of_nccl_tests_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"perf.txt: found no row of 13 columns; expected the table"):
        suite.busbw_of("1 2 3", "perf.txt")
    with pytest.raises(ValueError, match=r"--nccl-tests: found sizes \[4096, 65536\]; expected one of \[16\]"):
        suite.compared([{"collective": "all_reduce", "bytes": 16, "busbw": 1.0}], suite.busbw_of(NCCL_TESTS, ""))
    (tmp_path / "perf.txt").write_text(NCCL_TESTS)
    out = started(
        2, "bandwidth_benchmark_suite_8gpu.py", "--calls=1", "--max-bytes=4096", f"--nccl-tests={tmp_path / 'perf.txt'}", status=1
    )
    assert re.search(r"# all_reduce of 4096 bytes: busbw \S+, nccl-tests 0.50, \S+ %", out)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--nccl-tests", "gone.txt"], "--nccl-tests: [Errno 2] No such file or directory: 'gone.txt'"),
        (["--nccl-tests", "ch04/README.md"], "--nccl-tests: ch04/README.md: found no row of 13 columns; expected the table"),
        (["--plot", "gone/plot.svg"], "--plot gone/plot.svg: found no folder gone; expected one that exists"),
        (["--json", "gone/all.json"], "--json gone/all.json: found no folder gone; expected one that exists"),
        (["--calls", "0"], "--calls: found 0; expected at least 1"),
    ],
)
def test_bad_input_is_a_sentence_before_anything_is_measured(arguments, told, monkeypatch, capsys):
    monkeypatch.chdir(PROJECT_ROOT)
    with pytest.raises(SystemExit) as ended:
        suite.main(arguments)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_bandwidth_suite_alone_is_refused():
    assert "found 1 rank; expected at least 2" in started(1, "bandwidth_benchmark_suite_8gpu.py", status=1)


def test_async_tp_demo():
    out = started(2, "torchtitan_async_tp_demo.py", "--calls=1")
    assert "off by at most 0.0" in out
    assert "overlapped: not run, as symmetric memory needs a GPU for each rank" in out


def test_tensor_parallelism_trains_as_one_process():
    alone, shared = (started(ranks, "training_8xb200_pipeline.py", f"--tp-size={ranks}", *TINY) for ranks in (1, 2))
    assert losses_of(alone) == losses_of(shared)


def test_nodes_train_as_one_node():
    node = started(2, "training_8xb200_pipeline.py", "--tp-size=1", *TINY)
    nodes = started(4, "multi_node_blackwell.py", "--virtual-nodes=2", "--tp-size=2", *TINY)
    assert losses_of(node) == losses_of(nodes)


def test_a_tp_size_that_does_not_fit_is_refused():
    out = started(2, "training_8xb200_pipeline.py", "--tp-size=4", *TINY, status=1)
    assert "--tp-size: found 4; expected a divisor of the 2 ranks and of the model's 2 heads" in out


def test_a_loss_that_does_not_fall_is_an_error():
    started(1, "training_8xb200_pipeline.py", *TINY[:-2], "--bound=0.1", TINY[-1], status=1)


def test_presets_are_measured():
    out = started(2, "nccl_blackwell_config.py")
    assert len(re.findall(r"bytes: defaults \S+ us: defaults", out)) == 5
