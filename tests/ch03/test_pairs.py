"""Chapter 3's pairs: which pages a batch has, and which CPUs a pod may use and for how many threads."""

import gc
import os
import re
from pathlib import Path

import pytest
import torch

from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import import_file, load_workload
from tests.support.teeth import CPU, ROOT

SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")
MIB = 1 << 20


def huge_bytes(tensor):
    """How many bytes of the mapping that holds a tensor are in huge pages."""
    address = tensor.data_ptr()
    for part in re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", Path("/proc/self/smaps").read_text(), flags=re.MULTILINE)[1:]:
        first, last = (int(end, 16) for end in part.split()[0].split("-"))
        if first <= address < last:
            return 1024 * int(re.search(r"AnonHugePages:\s+(\d+)", part)[1])
    raise AssertionError("the tensor lies in no mapping")


@pytest.mark.skipif(not SETTING.exists() or "[madvise]" not in SETTING.read_text(), reason="huge pages are not given to who asks alone")
@pytest.mark.parametrize(("side", "least", "most"), [("baseline", 0, 0), ("optimized", 12 * MIB, 16 * MIB)])
def test_the_optimized_side_s_batch_is_in_huge_pages(side, least, most):
    dataset, faults = torch.rand(4096, 1024), torch.zeros(1, dtype=torch.int64)
    step = import_file(ROOT / f"ch03/{side}_huge_pages.py").prepare(dataset, torch.randperm(4096), faults)
    gc.collect()
    assert least <= huge_bytes(step()) <= most
    pages = 16 * MIB // (2 * MIB if least else 4096)
    assert pages - 1 <= faults.item() <= pages + 1024  # PyTorch's first call faults, too; and the ends of the mapping are small pages


@pytest.mark.parametrize("side", ["baseline", "optimized"])
def test_every_batch_is_in_memory_of_its_own(side):
    dataset, faults = torch.rand(64, 1024), torch.zeros(1, dtype=torch.int64)
    step = import_file(ROOT / f"ch03/{side}_huge_pages.py").prepare(dataset, torch.randperm(64), faults)
    first, second = step(), step()
    assert first.data_ptr() != second.data_ptr()


@pytest.mark.parametrize(
    ("cpus", "pods", "expected"),
    [
        (range(16), 4, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]),
        ((1, 5, 9), 2, [[1], [5, 9]]),
        ((3,), 3, [[3], [3], [3]]),
    ],
)
def test_pods_share_out_the_cpus(cpus, pods, expected, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(cpus))
    given = {}
    for side in ("baseline_moe", "optimized_moe_fewer_threads", "optimized_moe"):
        module = import_file(ROOT / f"ch03/{side}.py")
        monkeypatch.setattr(module, "launched", lambda *arguments, side=side, threads=None: given.setdefault(side, (arguments[2], threads)))
        module.prepare(None, None, None, None, None, pods, 1, 1, 1, 1, 1)
    assert given["optimized_moe"] == (expected, None)
    assert given["baseline_moe"] == ([set(cpus)] * pods, None)
    assert given["optimized_moe_fewer_threads"] == ([set(cpus)] * pods, len(expected[0]))


CPUS = os.sched_getaffinity(0)


@pytest.mark.parametrize(("cpus", "threads"), [({max(CPUS)}, None), (CPUS, 1)], ids=["one CPU", "all CPUs"])
def test_a_pod_runs_on_its_cpus_with_a_thread_for_each_or_as_few_as_it_is_told_and_ends_with_its_launcher(cpus, threads):
    workload = load_workload(ROOT / "ch03/workload_moe.py")
    shape = workload.check_at[1]
    values = Inputs(workload, shape, 1, CPU, ROOT).values
    launcher = import_file(ROOT / "ch03/shared_pods.py")
    started = []
    pod = launcher.pod
    launcher.pod = lambda *arguments: started.append(pod(*arguments)) or started[-1]
    launched = launcher.launched(values, shape, [cpus] * shape["pods"], threads)
    next(launched)()
    for process, _, _ in started:
        assert os.sched_getaffinity(process.pid) == cpus
        assert len(list(Path(f"/proc/{process.pid}/task").iterdir())) == 1
    next(launched, None)
    assert [process.returncode for process, _, _ in started] == [0] * shape["pods"]
