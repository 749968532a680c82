"""Sides that torch.compile compiles are right, timed and not accused, and their processes share one row's caches."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.python.errors import Status
from common.python.machine.description import child_environment
from common.python.processes.profile_job import Job, JobSide
from common.python.profile.tools import run_job
from common.python.session.planning import uses_compiler
from common.python.session.session import Session
from common.python.settings import Settings
from tests.support.commands import ROOT, benchmark, run_here
from tests.support.plans import a_plan

COMPILED = ROOT / "tests/compiled"


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(600)
def test_a_compiled_side_passes_and_so_does_one_that_imports_as_much(tmp_path):
    done = benchmark(
        *("run", "--root", COMPILED, "--device", "cpu", "--iterations", "4"),
        *("--targets", "ch14:mlp", "--targets", "ch14:mlp_imports_much", "--artifacts-dir", tmp_path / "run"),
        scratch=tmp_path,
    )
    assert done.code == 0, done.stdout + done.stderr
    rows = {row["target"]: row for row in json.loads((tmp_path / "run/metrics.json").read_text())["rows"]}
    assert {target: row["status"] for target, row in rows.items()} == {"ch14:mlp": "PASSED", "ch14:mlp_imports_much": "PASSED"}
    assert all(row["timings"]["cpu"]["speedups"]["optimized"]["low"] > 0 for row in rows.values())
    compiled, plain = rows["ch14:mlp"], rows["ch14:mlp_imports_much"]
    assert compiled["first_compilation_s"] >= sum(compiled["sides"]["optimized"]["setup"][part] for part in ("prepare_s", "first_call_s"))
    assert compiled["first_compilation_s"] + compiled["beyond_compilation_s"] == pytest.approx(compiled["seconds"])
    assert (plain["first_compilation_s"], plain["beyond_compilation_s"]) == (None, None)


ITEM = "Unsupported Tensor.item() call with capture_scalar_outputs=False"
SIZES = "tensor 'x' size mismatch at index 0. expected"
PLANTED = {
    "ch14:gated_broken": [
        rf"torch.compile broke a graph in 1 place, the first optimized_.*:12 \({re.escape(ITEM)}\); expected whole graphs",
        r"torch.compile compiled 1 time again, .*; expected one compilation for all calls",  # for each value of the peak
    ],
    "ch14:lengths_storm": [
        rf"torch.compile compiled 7 times again, first pooled in .*:7 \({SIZES} 8, actual 16\); expected one .*",
        rf"torch.compile gave 1 function up at its limit of .*, the first pooled in .*:7 \({SIZES} 64, actual 72\); expected .*",
    ],
    "ch14:batched_untuned": [
        r"autotuning failed 1 time, first for bmm, as none of .* \(planted: out of shared memory\); expected one that runs, .*"
    ],
}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("planted", PLANTED)
def test_a_graph_break_a_storm_and_a_failed_autotuning_are_a_line_each_and_the_honest_side_beside_them_has_none(tmp_path, planted):
    honest = planted.rpartition("_")[0]
    rows = {row.target: row for row in run_here(COMPILED, tmp_path / "run", command="verify", targets=(honest, planted)).rows}
    assert {target: row.status for target, row in rows.items()} == dict.fromkeys((honest, planted), Status.PASSED)
    notes = {target: [note for note in row.notes if "compile" in note or "autotuning" in note] for target, row in rows.items()}
    assert notes[honest] == []
    assert len(notes[planted]) == len(PLANTED[planted]), notes
    file = f"optimized_{planted.removeprefix('ch14:')}.py: "
    assert all(re.fullmatch(file + text, note) for text, note in zip(PLANTED[planted], notes[planted], strict=True)), notes


def test_the_tree_of_compiled_sides_is_recognized():
    sides = {path.name: uses_compiler(path) for path in COMPILED.glob("ch14/*_*.py")}
    assert {name for name, compiles in sides.items() if compiles} == {
        *("optimized_flex.py", "optimized_mlp.py", "optimized_mlp_max_autotune.py", "optimized_mlp_reduce_overhead.py"),
        *("optimized_scaled.py", "optimized_training.py"),
        *("optimized_gated.py", "optimized_gated_broken.py", "optimized_lengths.py", "optimized_lengths_storm.py"),
        *("optimized_batched.py", "optimized_batched_untuned.py"),
    }
    assert not uses_compiler(ROOT / "ch07/optimized_transpose.cu")


class Server:
    """Stands in for a fork server; `children` are the options of the forks it was asked for."""

    def __init__(self):
        self.children, self.second = [], None

    def for_compiled_sides(self):
        self.second = Server()
        return self.second

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stopped = True

    def fork(self, role, log, core, **options):
        self.children.append(options)
        return SimpleNamespace(__enter__=lambda: None, __exit__=lambda *_: None, kill=lambda: None)


@pytest.fixture
def plan(tmp_path):
    (tmp_path / "baseline_mlp.py").write_text('"""Eager."""\n')
    (tmp_path / "optimized_mlp.py").write_text('"""Compiled."""\n\nimport torch\n\nf = torch.compile(abs)\n')
    return a_plan(tmp_path, "mlp")


@pytest.mark.parametrize(("cold_start", "compiles"), [(False, True), (True, False)])
def test_a_compiled_side_has_a_fork_server_and_caches_of_its_own_but_for_cold_starts(tmp_path, plan, cold_start, compiles):
    server = Server()
    with Session(Settings(cold_start=cold_start), server, 1, tmp_path, lambda *_: tmp_path) as session:
        assert session._server_for(plan, "baseline") is server
        assert (session._server_for(plan, "optimized") is not server) == compiles
        assert session._server_for(plan, "optimized") is session._server_for(plan, "optimized")
        assert session.caches_of(plan, "baseline") == ""
        caches = session.caches_of(plan, "optimized")
        assert caches == session.caches_of(plan, "optimized")
        assert (caches != "" and Path(caches).is_dir()) == compiles
    assert (server.second is not None and server.second.stopped) == compiles
    assert not compiles or not Path(caches).exists()


def test_the_compiler_is_not_there_before_tritons_interpreter(tmp_path):
    (tmp_path / "baseline_mlp.py").write_text('"""Eager."""\n')
    (tmp_path / "optimized_mlp.py").write_text('"""Compiled."""\n\nimport torch\nimport triton\n\nf = torch.compile(abs)\n')
    server = Server()
    with Session(Settings(), server, 1, tmp_path, lambda *_: tmp_path) as session:
        for device, starts in (("cpu", []), ("cuda", ["triton", "compiler"])):
            plan = a_plan(tmp_path, "mlp", device=device)
            assert session.starts(plan, "optimized") == starts
            assert session.caches_of(plan, "optimized") != ""
            assert (session._server_for(plan, "optimized") is server) == (device == "cpu")


@pytest.mark.slow
def test_a_profiler_sees_what_was_compiled_for_the_times(tmp_path):
    """Tuned anew, a side might have other kernels: in the profiled process both sides find theirs where the row's processes left them."""
    sides = [
        JobSide(
            label=f"ch14:mlp/{side}",
            workload=str(COMPILED / "ch14/workload_mlp.py"),
            side=str(COMPILED / f"ch14/optimized_mlp{of}.py"),
            library="",
            shapes=[{"rows": 33, "width": 96}],
            trace=str(tmp_path / f"{side}.json"),
            caches=str(tmp_path / side),
        )
        for side, of in (("baseline", ""), ("optimized", "_reduce_overhead"))
    ]

    def graphs():
        left = []
        for turn in range(2):
            told = {"progress": str(tmp_path / "progress.txt"), "log": str(tmp_path / "program.log")}
            job = Job(mode="trace", device="cpu", seed=7 + turn, folder=str(tmp_path), sides=sides, **told)
            assert run_job((), job, tmp_path / "tool.log", child_environment(ROOT, "cpu"), 300.0).code == 0
            left.append([{path for path in Path(side.caches).rglob("*") if "fxgraph" in path.parts} for side in sides])
        return left

    first, second = graphs()
    assert all(first)
    assert first == second
