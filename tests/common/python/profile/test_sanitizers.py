"""CUDA sides of a chapter under a stand-in for compute-sanitizer: one process for all, one each where it finds something."""

from dataclasses import replace

import pytest

from common.python.profile import sanitizers
from common.python.profile.sanitizers import findings_in, sanitize
from common.python.profile.tools import ToolFailed
from common.python.session.session import Sanitized
from tests.support.plans import WITH_GPU, WITHOUT_GPU, a_plan
from tests.support.probes import a_kernel
from tests.support.profiled import a_session, built, put_on_path

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


def cuda_plan(folder, name, **changes):
    """A pair of .cu files, of which only the names count."""
    plan = a_plan(folder, name, **changes)
    files = {side: file.with_suffix(".cu") for side, file in plan.selection.pair.sides.items()}
    return replace(plan, selection=replace(plan.selection, pair=replace(plan.selection.pair, sides=files)))


@pytest.fixture
def sanitized_by(tmp_path, monkeypatch):
    """Sanitizes two pairs, one of whose sides' libraries may be flawed; the files are in tmp_path / "run"."""
    monkeypatch.setattr("common.python.profile.sanitizers.read_code", lambda _: (a_kernel("copy(const float *, float *, int)"),))
    monkeypatch.setattr("common.python.profile.sanitizers.build_row", lambda *_: None)

    def run_all(mode="", chosen=("memcheck",), flawed=(), machine=WITH_GPU, tools=("compute-sanitizer",), **changes):
        put_on_path(monkeypatch, *tools, folder=tmp_path / "tools", mode=mode)
        plans = [cuda_plan(tmp_path, name, **changes) for name in ("copy", "transpose")]
        session = a_session(tmp_path / "run", sanitize=chosen)
        for plan in plans:
            for file in plan.selection.pair.sides.values():
                library = tmp_path / f"{file.stem}{'_flawed' if file.stem in flawed else ''}.so"
                session.builds[str(file)] = built(library)
        return sanitize(plans, session, machine)

    return run_all


@pytest.fixture
def sanitized(sanitized_by):
    """The same by one tool, and what it says of each row."""

    def run(mode="", tool="memcheck", **changes):
        said = sanitized_by(mode, (tool,), **changes)
        assert {len(each) for each in said.values()} == {1}
        return {target: of_tool for target, (of_tool,) in said.items()}

    return run


def runs(tmp_path, tool="memcheck"):
    return (tmp_path / "run" / "ch07" / tool / "runs.txt").read_text().splitlines()


@pytest.mark.parametrize("tool", TOOLS)
def test_a_clean_chapter_is_one_process_a_tool_with_an_allocation_a_tensor(sanitized, tmp_path, tool):
    found = sanitized(tool=tool)
    assert runs(tmp_path, tool) == [f"{tool} 4 1"]
    assert found["ch07:copy"] == Sanitized(note=f"sanitize: {tool} found nothing in baseline_copy.cu, optimized_copy.cu")
    assert not found["ch07:transpose"].finding


@pytest.mark.parametrize(("mode", "tool"), [("", "memcheck"), ("", "racecheck"), ("crash", "memcheck")])
def test_a_finding_is_of_the_side_that_has_it_and_of_no_other(sanitized, tmp_path, mode, tool):
    found = sanitized(mode, tool, flawed=("optimized_copy",))
    assert found["ch07:copy"].finding == (
        f"optimized_copy.cu: {tool} found Invalid __global__ write of size 4 bytes at copy(const float *, float *, int)+0x90 "
        "by thread (97,0,0) in block (0,0,0) Access to 0x7f51e2a00184 is out of bounds and is 1 bytes after the nearest allocation at "
        "0x7f51e2a00000 of size 388 bytes at the check shapes; expected nothing"
    )
    assert found["ch07:transpose"].finding == ""
    assert runs(tmp_path, tool) == [f"{tool} 4 1"] + [f"{tool} 1 1"] * 4


def test_a_race_in_a_function_that_was_inlined_is_of_the_side(sanitized):
    found = sanitized("inlined", "racecheck", flawed=("optimized_copy",))
    assert found["ch07:copy"].finding.startswith(
        "optimized_copy.cu: racecheck found Error: Race reported between Write access at WgmmaSums"
    )
    assert found["ch07:transpose"] == Sanitized(note="sanitize: racecheck found nothing in baseline_transpose.cu, optimized_transpose.cu")


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("broken", "exit code 1 in a step of optimized"),
        ("lost", "Internal Sanitizer Error"),
        ("overflow", "Warning: Detected overflow of tracked cuda::barrier structures"),
    ],
)
def test_a_side_that_did_not_come_to_its_end_is_not_said_to_be_clean(sanitized, mode, why):
    found = sanitized(mode, flawed=("optimized_copy",))
    assert found["ch07:copy"].note.startswith("sanitize: memcheck: optimized_copy.cu: ")
    assert why in found["ch07:copy"].note
    assert found["ch07:transpose"].note == "sanitize: memcheck found nothing in baseline_transpose.cu, optimized_transpose.cu"


def test_a_side_that_fails_hides_no_finding_of_another(sanitized, monkeypatch):
    real = sanitizers._under

    def broken_for_one(name, sides, session, log):
        if log == "optimized_transpose":
            raise ToolFailed("timed out")
        return real(name, sides, session, log)

    monkeypatch.setattr(sanitizers, "_under", broken_for_one)
    found = sanitized(flawed=("optimized_copy",))
    assert found["ch07:copy"].finding.startswith("optimized_copy.cu: memcheck found Invalid __global__ write")
    assert found["ch07:transpose"] == Sanitized(note="sanitize: memcheck: optimized_transpose.cu: timed out")


def test_each_tool_says_one_thing_of_each_row(sanitized_by, tmp_path):
    said = sanitized_by(chosen=TOOLS)
    for name in ("copy", "transpose"):
        files = f"baseline_{name}.cu, optimized_{name}.cu"
        assert [each.note for each in said[f"ch07:{name}"]] == [f"sanitize: {tool} found nothing in {files}" for tool in TOOLS]
    assert [runs(tmp_path, tool) for tool in TOOLS] == [[f"{tool} 4 1"] for tool in TOOLS]


def test_what_one_tool_finds_keeps_no_other_from_running(sanitized_by, tmp_path):
    said = sanitized_by(chosen=TOOLS, flawed=("optimized_copy",))
    assert [each.finding.split(" found ")[0] for each in said["ch07:copy"]] == [f"optimized_copy.cu: {tool}" for tool in TOOLS]
    assert [bool(each.note) for each in said["ch07:transpose"]] == [True] * 4
    assert all(len(runs(tmp_path, tool)) == 5 for tool in TOOLS)


def test_a_tool_that_fails_keeps_no_other_from_running(sanitized_by):
    said = sanitized_by("deaf", ("memcheck", "initcheck", "synccheck"))["ch07:copy"]
    assert [each.note.split(";")[0].split(" in ")[0] for each in said] == [
        "sanitize: memcheck found nothing",
        "sanitize: initcheck: no summary, exit code 0 (========= COMPUTE-SANITIZER)",
        "sanitize: synccheck found nothing",
    ]


def test_what_a_kernel_of_torch_does_is_no_finding_of_the_side(sanitized, monkeypatch):
    monkeypatch.setattr("common.python.profile.sanitizers.read_code", lambda _: (a_kernel("transpose(float *)"),))
    assert sanitized(flawed=("optimized_copy",))["ch07:copy"].finding == ""


@pytest.mark.parametrize(
    ("mode", "note"),
    [
        ("mute", "sanitize: memcheck: no summary, exit code 0 (========= COMPUTE-SANITIZER); expected a count of findings"),
        ("unsupported", 'sanitize: memcheck: Error: Device not supported. Please refer to the "Supported Devices" section'),
    ],
)
def test_a_tool_that_does_not_count_is_a_line(sanitized, mode, note):
    for each in sanitized(mode).values():
        assert each.note.startswith(note)
        assert each.finding == ""


def test_a_missing_tool_is_a_line(sanitized, monkeypatch):
    monkeypatch.setattr("common.python.machine.description._tool_folders", lambda: ())
    expected = "sanitize: memcheck: not found; install the CUDA toolkit's compute-sanitizer"
    assert {each.note for each in sanitized(tools=()).values()} == {expected}


def test_nothing_runs_without_a_gpu_or_for_a_skipped_row(sanitized):
    assert {each.note for each in sanitized(machine=WITHOUT_GPU, device="cpu").values()} == {"sanitize: memcheck: no CUDA device"}


def test_a_skipped_row_is_not_sanitized(sanitized):
    notes = {each.note for each in sanitized(skip="needs tcgen05").values()}
    assert notes == {"sanitize: memcheck: no CUDA side that runs on this machine"}


def test_a_race_is_told_in_one_line():
    log = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at reduce(float *)+0x140
=========     and Read access at reduce(float *)+0xe0 [4 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"""
    race = "Error: Race reported between Write access at reduce(float *)+0x140 and Read access at reduce(float *)+0xe0 [4 hazards]"
    assert findings_in(log) == [race]
