"""What is imported once, before workers are forked: Triton, for which each side that launches it pays in its set-up, and meshes."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from common.python.errors import SideFailure
from common.python.machine.description import child_environment
from common.python.processes import messages
from common.python.processes.fork_server import ForkServer
from common.python.project import PROJECT_ROOT
from common.python.session.session import Session
from common.python.settings import Settings
from tests.support.commands import loaded_worker
from tests.support.plans import a_plan

TELLTALE = '''"""Baseline: says whether Triton was there before it, and where Triton would keep what it compiles."""
import sys

early = [name for name in ("triton", "triton.runtime.cache") if name in sys.modules]

from triton import knobs
from triton.runtime.cache import triton_key

def prepare(x):
    raise RuntimeError(f"{early} key known: {triton_key.cache_info().currsize == 1}; caches in {knobs.cache.dir}")
'''


@pytest.fixture(scope="module")
def server():
    """One of this file's own: after a fork with Triton started all its children have it."""
    with ForkServer(child_environment(PROJECT_ROOT, "cpu")) as server:
        yield server


def told(child):
    with child, pytest.raises(SideFailure) as caught:
        child.ask(messages.Prepare(shape={"n": 3}, seed=1, live_seed=2), messages.Prepared, 30)
    return caught.value.reason


def test_workers_find_triton_started_and_its_caches_where_they_put_them(server, tmp_path):
    child, _ = loaded_worker(server, tmp_path, TELLTALE)
    assert "[] key known: False" in told(child)
    child, _ = loaded_worker(server, tmp_path, TELLTALE, triton=True, cold=True)
    reason = told(child)
    assert "['triton', 'triton.runtime.cache'] key known: True" in reason
    assert f"caches in {tmp_path}/compile_caches_" in reason


CACHES = '''"""Baseline: says where compilers would keep what they compile, and how often one has forgotten it."""
import os, sys
from types import SimpleNamespace

resets = []
sys.modules["torch._dynamo"] = SimpleNamespace(reset=lambda: resets.append(1))

def prepare(x, n):
    if n == 3 and not resets:
        return lambda: x * 2
    names = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TORCHINDUCTOR_COMPILE_THREADS")
    raise RuntimeError(f"{[os.environ[name] for name in names]}, forgot {len(resets)} times")
'''


@pytest.mark.parametrize("cold", [False, True])
def test_a_watched_worker_shares_its_rows_graphs_and_not_its_kernels(server, tmp_path, cold):
    child, _ = loaded_worker(server, tmp_path, CACHES, cold=cold, caches=f"{tmp_path}/row")
    with child:
        child.ask(messages.Prepare(shape={"n": 3}, seed=1, live_seed=2), messages.Prepared, 30)
        child.ask(messages.Prepare(shape={"n": 3}, seed=1, live_seed=2), messages.Prepared, 30)
        with pytest.raises(SideFailure) as caught:
            child.ask(messages.Prepare(shape={"n": 4}, seed=1, live_seed=2), messages.Prepared, 30)
    kernels = f"{tmp_path}/compile_caches_" if cold else f"{tmp_path}/row/triton"
    assert f"'{kernels}" in caught.value.reason
    assert f"'{tmp_path}/row/inductor', '1'], forgot 1 times" in caught.value.reason  # only another shape is compiled anew


def test_a_side_that_launches_triton_pays_for_its_start_in_every_worker(server, tmp_path):
    honest = '"""Baseline."""\n\ndef prepare(x):\n    return lambda: x * 2\n'
    loads = []
    for triton in (True, True, False):
        child, loaded = loaded_worker(server, tmp_path, honest, triton=triton)
        child.close()
        loads.append(loaded.seconds)
    first, second, without = loads
    assert min(first, second) > without + 0.1  # reading 400 MB takes longer, and loading the side a few ms


@pytest.mark.parametrize(
    ("device", "cold_start", "text", "starts"),
    [
        ("cuda", False, "import triton", True),
        ("cuda", False, "import torch", False),
        ("cuda", True, "import triton", False),  # it pays for the start itself
        ("cpu", False, "import triton", False),  # the interpreter must be switched on before Triton is imported
    ],
)
def test_triton_is_started_for_those_that_launch_it(tmp_path, device, cold_start, text, starts):
    file = tmp_path / "optimized_x.py"
    file.write_text(text)
    plan = a_plan(tmp_path, "x", device=device)
    with Session(Settings(cold_start=cold_start), None, 1, tmp_path, lambda *_: tmp_path) as session:
        assert session.starts_triton(plan, "optimized") is starts


SHARDED = "from torch.distributed.fsdp import fully_shard"


@pytest.mark.parametrize(
    ("ranks", "cold_start", "text", "starts"),
    [
        (4, False, SHARDED, ["meshes"]),
        (4, False, "from torch.distributed.tensor import DTensor", ["meshes"]),
        (4, False, "import torch.distributed as dist", []),
        (1, False, SHARDED, []),
        (4, True, SHARDED, []),  # it pays for its imports itself
    ],
)
def test_meshes_are_there_for_ranks_that_ask_for_them(tmp_path, ranks, cold_start, text, starts):
    (tmp_path / "optimized_x.py").write_text(text)
    plan = a_plan(tmp_path, "x", ranks=ranks)
    with Session(Settings(cold_start=cold_start), None, 1, tmp_path, lambda *_: tmp_path) as session:
        assert session.starts(plan, "optimized") == starts
        asked = SimpleNamespace(for_compiled_sides=lambda: nullcontext("another"))
        session.server = asked
        assert session._server_for(plan, "optimized") == ("another" if starts else asked)  # DTensor takes the compiler in


def test_a_side_finds_meshes_imported_where_they_were_started(server, tmp_path):
    early = '{"torch.distributed.fsdp", "torch._dynamo"} <= sys.modules.keys()'
    telltale = f'"""Baseline."""\nimport sys\n\nearly = {early}\n\ndef prepare(x):\n    raise RuntimeError(str(early))\n'
    child, _ = loaded_worker(server, tmp_path, telltale)
    assert "RuntimeError: False" in told(child)
    child, _ = loaded_worker(server, tmp_path, telltale, starts=["meshes"])
    assert "RuntimeError: True" in told(child)
