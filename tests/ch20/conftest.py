"""The generator's script, loaded as where it is run, and a judge of candidates of a small CPU workload."""

import importlib.util
import tempfile
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from common.python.errors import BenchmarkError
from common.python.processes.sandbox import Limits, require_sandbox
from common.python.project import PROJECT_ROOT

FOLDER = PROJECT_ROOT / "ch20"
CHEATS = PROJECT_ROOT / "tests/adversaries/cheats"


@pytest.fixture(scope="module")
def generator():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        spec = importlib.util.spec_from_file_location("ai_kernel_generator", FOLDER / "ai_kernel_generator.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        patch.setattr(module, "lock", lambda *_: nullcontext())  # no time of these tests is kept, so they wait for nobody's
        yield module


@pytest.fixture
def tmp_path():
    """A short one: a local socket's path, in the temporary folder of a candidate, has at most 108 characters."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def limits():
    """Those of a candidate. Skips where the sandbox cannot be had, which is asked once: each run in it fails then too."""
    limits = Limits(memory_bytes=4 << 30, seconds=120.0)
    try:
        require_sandbox(limits)
    except BenchmarkError as error:
        pytest.skip(str(error))
    return limits


@pytest.fixture
def offered(generator, limits, tmp_path):
    """Has the generator's own judge look at a source as a candidate of the cheats' workload `name`, and sees to it that nothing is left."""

    def offer(source, name="sum", **changes):
        harness = generator.Harness(("--device", "cpu", "--iterations", "6"), "cpu", Limits(**(vars(limits) | changes)))
        judge = generator.judge_of(generator.Pair(CHEATS, name, ".py"), tmp_path / "out", harness)
        status, reason, *speedup = judge(1, source)
        assert [process for process in psutil.process_iter() if _temporary_of(process).startswith(str(tmp_path))] == []
        assert sorted(path.name for path in (tmp_path / "out/attempt_001").iterdir()) == ["kernels", "run"]
        return SimpleNamespace(status=status, reason=reason, speedup=speedup)

    return offer


def _temporary_of(process):
    """The folder for temporary files of a process, by which those of a sandbox are known."""
    try:
        return process.environ().get("TMPDIR", "")
    except psutil.Error:
        return ""
