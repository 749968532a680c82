"""The second process of a compiled side compiles nothing: it finds the code in the row's caches, whose keys are known before its fork."""

import ast
import re

import pytest

from common.python.errors import SideFailure
from common.python.machine.description import child_environment
from common.python.processes import messages
from common.python.processes.fork_server import ForkServer
from common.python.project import PROJECT_ROOT
from tests.support.commands import loaded_worker

SIDE = '''"""Baseline: tells, where it is prepared again, which keys were known, how often it was called, and what the caches had."""
import torch

calls = []
known = []

def prepare(x):
    from torch._dynamo.utils import compilation_time_metrics, counters
    from triton.runtime.cache import triton_key

    if known:
        cached = {name.removeprefix("autograd_cache_"): count for name, count in counters["aot_autograd"].items() if "cache" in name}
        raise RuntimeError(f"told {known + [len(calls), cached]}")
    known.extend([len(compilation_time_metrics.get("inductor_codecache_torch_key", ())), triton_key.cache_info().currsize])
    double = torch.compile(lambda x: 2 * x)

    def step():
        calls.append(1)
        return double(x)

    return step
'''


@pytest.fixture(scope="module")
def server():
    """The second of a run's fork servers: all its children find the compiler imported."""
    with ForkServer(child_environment(PROJECT_ROOT, "cpu")).for_compiled_sides() as server:
        yield server


@pytest.mark.timeout(300)
def test_who_is_called_as_it_is_prepared_loads_what_another_process_compiled(server, tmp_path):
    prepare = messages.Prepare(shape={"n": 3}, seed=1, live_seed=2, call=True)
    seconds, told = [], []
    for _ in range(2):
        child, _ = loaded_worker(server, tmp_path, SIDE, caches=str(tmp_path / "caches"), starts=["compiler"])
        with child:
            seconds.append(child.ask(prepare, messages.Prepared, 120).seconds)
            with pytest.raises(SideFailure) as caught:
                child.ask(prepare, messages.Prepared, 120)
        told.append(ast.literal_eval(re.search(r"told (\[.*\]);", caught.value.reason)[1]))
    assert told == [[1, 1, 1, {"miss": 1, "saved": 1}], [1, 1, 1, {"hit": 1}]]
    assert seconds[1] < seconds[0]
