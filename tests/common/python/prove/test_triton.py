"""A Triton side is compiled once for all that the answer depends on: after any change it is compiled again."""

import os
import time
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.python.errors import SideFailure, Status
from common.python.pairs.directives import Directives
from common.python.processes import messages
from common.python.prove import triton as triton_compilations
from common.python.prove.collect import compile_ahead, proofs_of, read_evidence, watch_evidence
from tests.support.commands import write_pair
from tests.support.plans import WITH_GPU, a_plan
from tests.support.probes import a_launch

SIDE = '''"""Optimized: a kernel."""
import triton
from shared_factor import FACTOR, scale


def prepare(x, n):
    return lambda: scale[(triton.cdiv(n, 64),)](x, n, FACTOR)
'''
SHARED = """import triton
import triton.language as tl
FACTOR = 2


@triton.jit
def scale(x, n, FACTOR: tl.constexpr):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(x + i, FACTOR * tl.load(x + i, mask=i < n), mask=i < n)
"""
LONG_AGO = 1e9


class Child(AbstractContextManager):
    """A child that says at once what it is told to, and leaves a cubin."""

    def __init__(self, server):
        self.server, self.killed = server, False

    def __exit__(self, *_):
        self.server.at_work -= 1
        if self.server.on_close:
            raise self.server.on_close

    def kill(self):
        self.killed = True

    def begin(self, request):
        self.server.asked.append(request)
        self.server.at_work += 1
        self.server.most = max(self.server.most, self.server.at_work)

    def finish(self, request, expected, seconds):
        self.server.meanwhile()
        if self.server.failure:
            raise self.server.failure
        cubin = Path(f"{request.prefix}0.cubin")
        cubin.write_text(f"ELF of {request.capability}")
        imported = [*self.server.imported, request.workload, request.side]
        return messages.Observed(nonce="", launches=[a_launch("scale")], spans=[], cubins=[str(cubin)], missed="", imported=imported)


class Server:
    def __init__(self):
        self.asked, self.imported, self.at_work, self.most = [], [], 0, 0
        self.failure = self.on_close = None
        self.meanwhile = lambda: None

    def fork(self, role, log, *, starts):
        return Child(self)


def a_session(server, folder):
    prefixes = iter(range(1000))
    return SimpleNamespace(
        server=server,
        builds={},
        past=None,
        tell=lambda _: None,
        logs=lambda target, side: folder,
        dump_prefix=lambda: f"{folder}/{next(prefixes)}",
        starts_triton=lambda plan, side: plan.device == "cuda",
        limit_s=lambda phase: 120.0,
    )


def plan_in(folder, shape=None, **changes):
    """A row in which the optimized side alone has Triton kernels, and which claims something."""
    claim = {"side_directives": {"baseline": Directives(), "optimized": Directives(has=("launches == 1",))}}
    plan = a_plan(folder, "double", **claim | changes)
    described = plan.described.model_copy(update={"timed": {"default": shape or {"n": 1024}}})
    return replace(plan, described=described)


@pytest.fixture
def pair(tmp_path, monkeypatch):
    """A pair that shares a module, with a harness of one file and a build cache of its own; `again` compiles and says how often."""
    monkeypatch.setattr(triton_compilations, "BUILD_CACHE", tmp_path / "build")
    harness = tmp_path / "common"
    harness.mkdir()
    (harness / "loader.py").write_text("import torch")
    os.utime(harness / "loader.py", (LONG_AGO, LONG_AGO))
    monkeypatch.setattr(triton_compilations, "_HARNESS", harness)
    folder = write_pair(tmp_path, optimized=SIDE) / "demo"
    (folder / "shared_factor.py").write_text(SHARED)
    (scratch := tmp_path / "scratch").mkdir()
    server = Server()
    server.imported = [str(harness / "loader.py"), str(folder / "shared_factor.py")]

    def again(capability=(9, 0), **changes):
        server.asked.clear()
        compilation = triton_compilations.Compilation(plan_in(folder, **changes), "optimized", capability, a_session(server, scratch))
        if compilation.observed is None:
            compilation.begin()
            compilation.finish()
        assert Path(compilation.observed.cubins[0]).read_text() == f"ELF of {capability}"
        return len(server.asked)

    return SimpleNamespace(again=again, folder=folder, harness=harness, server=server, scratch=scratch, build=tmp_path / "build")


def test_the_same_is_compiled_once(pair):
    assert [pair.again(), pair.again()] == [1, 0]
    assert [pair.again(capability=(10, 0)), pair.again(capability=(10, 0)), pair.again()] == [1, 0, 0]


def test_another_checkout_of_the_same_finds_it(pair, tmp_path):
    pair.again()
    pair.folder.rename(tmp_path / "elsewhere")
    pair.folder = tmp_path / "elsewhere"
    session = a_session(pair.server, pair.scratch)
    assert triton_compilations.Compilation(plan_in(pair.folder), "optimized", (9, 0), session).observed is not None


@pytest.mark.parametrize("name", ["workload_double.py", "optimized_double.py", "shared_factor.py"])
def test_a_changed_file_compiles_again(pair, name):
    pair.again()
    file = pair.folder / name
    before = file.read_text()
    file.write_text(before + "\n")
    assert [pair.again(), pair.again()] == [1, 0]
    file.write_text(before)
    assert pair.again() == 0


def test_a_file_that_could_now_be_imported_compiles_again(pair):
    pair.again()
    (pair.folder / "shared_other.py").write_text("")
    assert pair.again() == 1


@pytest.mark.parametrize("changes", [{"shape": {"n": 2048}}, {"shape": {"n": 1024.0}}, {"device": "cpu"}])
def test_another_question_compiles_again(pair, changes):
    pair.again()
    assert [pair.again(**changes), pair.again(**changes), pair.again()] == [1, 0, 0]


@pytest.mark.parametrize("package", ["torch", "triton"])
def test_another_version_compiles_again(pair, monkeypatch, package):
    pair.again()
    monkeypatch.setattr(triton_compilations.importlib.metadata, "version", lambda name: "99.0" if name == package else "1")
    assert [pair.again(), pair.again()] == [1, 0]


@pytest.mark.parametrize(("variable", "compiled"), [("TRITON_DEFAULT_FP_FUSION", 1), ("PTXAS_OPTIONS", 1), ("TRITON_CACHE_DIR", 0)])
def test_what_triton_is_told_to_do_compiles_again(pair, monkeypatch, variable, compiled):
    pair.again()
    monkeypatch.setenv(variable, "0")
    assert pair.again() == compiled


def test_a_changed_harness_compiles_again_and_keeps_nothing_that_an_older_one_may_have_found(pair):
    pair.again()
    (pair.harness / "loader.py").write_text("import torch, triton")
    os.utime(pair.harness / "loader.py", (LONG_AGO, LONG_AGO))
    assert [pair.again(), pair.again()] == [1, 0]
    os.utime(pair.harness / "loader.py", (later := time.time() + 60, later))  # the fork server may have imported what was there before
    assert [pair.again(), pair.again()] == [1, 1]


def test_what_came_from_elsewhere_is_not_kept(pair, tmp_path):
    (tmp_path / "other.py").touch()
    pair.server.imported.append(str(tmp_path / "other.py"))
    assert [pair.again(), pair.again()] == [1, 1]


def test_what_changed_while_it_was_compiled_is_not_kept(pair):
    side = pair.folder / "optimized_double.py"
    before = side.read_text()
    pair.server.meanwhile = lambda: side.write_text(before + "\n")
    pair.again()
    pair.server.meanwhile = lambda: None
    side.write_text(before)  # nobody knows which of the two was compiled
    assert [pair.again(), pair.again()] == [1, 0]


@pytest.mark.parametrize("kind", ["ahead", "cubin"])
@pytest.mark.parametrize("damage", [lambda it: it[: len(it) // 2], lambda it: b"", lambda it: it.replace(b"o", b"O"), None])
def test_a_damaged_entry_is_replaced(pair, kind, damage):
    pair.again()
    (file,) = pair.build.glob(f"*.{kind}")
    whole = file.read_bytes()
    file.write_bytes(damage(whole)) if damage else file.unlink()
    assert pair.again() == 1
    assert pair.again() == 0
    assert file.exists()
    assert kind == "ahead" or file.read_bytes() == whole


def test_a_failure_is_told_and_not_kept(pair):
    compilation = triton_compilations.Compilation(plan_in(pair.folder), "optimized", (9, 0), a_session(pair.server, pair.scratch))
    pair.server.failure = SideFailure(Status.CRASHED, "raised CompilationError")
    compilation.begin()
    with pytest.raises(SideFailure):
        compilation.finish()
    assert (compilation.observed, compilation.why) == (None, "raised CompilationError")
    pair.server.failure = None
    assert pair.again() == 1


def test_an_answer_of_a_child_that_wrote_more_is_none(pair):
    compilation = triton_compilations.Compilation(plan_in(pair.folder), "optimized", (9, 0), a_session(pair.server, pair.scratch))
    pair.server.on_close = SideFailure(Status.CRASHED, "something wrote on the harness's socket")
    compilation.begin()
    with pytest.raises(SideFailure):
        compilation.finish()
    assert (compilation.observed, compilation.why) == (None, "something wrote on the harness's socket")
    assert not pair.build.exists()


@pytest.fixture
def cores(monkeypatch):
    monkeypatch.setattr("common.python.session.builds.os.sched_getaffinity", lambda _: {0, 1, 2})
    monkeypatch.setattr("common.python.session.builds.psutil.virtual_memory", lambda: SimpleNamespace(available=64 << 30))


def test_triton_sides_are_compiled_ahead_side_by_side_and_each_row_finds_them(pair, cores):
    session, told = a_session(pair.server, pair.scratch), []
    plan = plan_in(pair.folder)
    compile_ahead([plan, plan], session, told.append)
    assert sorted(request.capability for request in pair.server.asked) == [(9, 0), (10, 0)]
    assert pair.server.most == 2
    assert told[-1] == "compiled 2 of 2 steps of Triton sides"
    read_evidence(plan, session)
    compile_ahead([plan], session, told.append)
    assert len(pair.server.asked) == 2


def test_a_row_compiles_what_failed_ahead_and_tells_why(pair, cores):
    session, told = a_session(pair.server, pair.scratch), []
    pair.server.failure = SideFailure(Status.CRASHED, "raised CompilationError")
    compile_ahead([plan_in(pair.folder)], session, told.append)
    evidence = read_evidence(plan_in(pair.folder), session)
    assert {seen.hidden for seen in evidence["optimized"].values()} == {"raised CompilationError"}
    assert set(evidence["optimized"]) == {"90a", "100a"}
    assert len(pair.server.asked) == 4


def test_a_row_that_claims_nothing_compiles_nothing(pair, cores):
    plan = plan_in(pair.folder, side_directives=dict.fromkeys(("baseline", "optimized"), Directives()))
    compile_ahead([plan], a_session(pair.server, pair.scratch), str)
    read_evidence(plan, a_session(pair.server, pair.scratch))
    assert pair.server.asked == []


class Watched:
    """The processes of a side of several ranks, one step of which is watched."""

    def __init__(self, kernels):
        self._launches = [a_launch(name) for name in kernels]

    def finish_load(self):
        pass

    def begin(self, request):
        pass

    def finish(self, answer, seconds):
        return messages.Observed(nonce="", launches=self._launches, spans=[], cubins=[], missed="") if answer is messages.Observed else None

    def begin_close(self):
        pass


def of_ranks(plan):
    return replace(plan, described=plan.described.model_copy(update={"ranks": [2, 4]}), ranks=2)


@pytest.mark.parametrize(
    ("baseline", "optimized", "state", "detail"),
    [
        (["nccl_ReduceScatter"], ["scale", "nccl_SendRecv"], "proven", "1 kernel of nccl_SendRecv; baseline: 0 kernels (sm_90a)"),
        (["nccl_ReduceScatter"], ["scale", "nccl_ReduceScatter"], "failed", "0 kernels (sm_90a)"),
        (["nccl_SendRecv"], ["scale", "nccl_SendRecv"], "failed", "the same in the baseline: 1 kernel of nccl_SendRecv (sm_90a)"),
    ],
    ids=["honest", "a side that sends nothing", "a baseline that sends, too"],
)
def test_claims_of_a_triton_side_in_several_ranks_are_checked_by_the_step_that_is_watched(pair, baseline, optimized, state, detail):
    claims = {"baseline": Directives(), "optimized": Directives(proves=("kernel SendRecv",))}
    plan, session = of_ranks(plan_in(pair.folder, side_directives=claims)), a_session(pair.server, pair.scratch)
    session.new_seed = lambda: 0
    evidence = read_evidence(plan, session)
    assert [proof.state for proof in proofs_of(plan, evidence)] == ["unchecked"]  # where there is no GPU
    watch_evidence(plan, session, WITH_GPU, evidence, {"baseline": Watched(baseline), "optimized": Watched(optimized)})
    assert [(proof.state, proof.detail) for proof in proofs_of(plan, evidence)] == [(state, detail)]
    assert pair.server.asked == []  # nothing of several ranks is compiled ahead


def test_the_second_run_of_a_real_row_forks_nobody_and_finds_the_same(tmp_path, monkeypatch, triton_server):
    monkeypatch.setattr(triton_compilations, "BUILD_CACHE", tmp_path / "build")
    monkeypatch.setattr(triton_compilations, "_BEGAN", time.time() + 60)  # whoever edits the harness while this runs
    folder = write_pair(tmp_path, optimized=SIDE, time_at='{"n": 1024}') / "demo"
    (folder / "shared_factor.py").write_text(SHARED)
    forks = []
    counting = SimpleNamespace(fork=lambda *words, **choices: forks.append(words) or triton_server.fork(*words, **choices))
    plan = plan_in(folder)
    first = read_evidence(plan, a_session(counting, tmp_path))
    assert len(forks) == 2
    assert read_evidence(plan, a_session(counting, tmp_path)) == first
    assert len(forks) == 2
    (folder / "shared_factor.py").write_text(SHARED.replace("FACTOR = 2", "FACTOR = 3"))
    assert read_evidence(plan, a_session(counting, tmp_path)) != first
    assert len(forks) == 4
    for architecture, seen in first["optimized"].items():
        assert [(kernel.name, kernel.architecture) for kernel in seen.kernels] == [("scale", architecture)]
        assert [launch.kernel for launch in seen.launches] == ["scale"]
