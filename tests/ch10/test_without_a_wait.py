"""What takes a wait out of a pipeline takes out that one and no other, and what became of it is told apart: no GPU is needed here."""

import argparse
import ctypes
import difflib
import json
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from common.python.build.sass import read_code
from common.python.errors import SideFailure
from common.python.profile.tools import ToolFailed
from common.python.session.session import BUILD_CACHE
from tests.ch10 import mutant_child, without_a_wait
from tests.ch10.emulated import LAZINESS, build, skip_without_compiler, texts_of
from tests.ch10.mutants import DELAYED, Wait, bounded, delayed, waits_of, without, write
from tests.ch10.without_a_wait import SURVIVORS, TARGETS, Mutant, child_of, for_products, job_of, judged, made, main, measured, table_of
from tests.support.cuda_sides import skip_without_tools
from tests.support.teeth import ROOT

TWIN = {"mbarrier": 7, "stores": 2, "warpgroup": 2, "fence": 1, "block": 1, "warp": 1, "sums": 1, "products": 2}
LADDER = {"mbarrier": 2, "products": 1, "sums": 1, "stores": 1, "warpgroup": 2, "fence": 1}  # some of them in a drain that not all use
COUNTS = {
    "wgmma_triple_overlap": TWIN,
    "warp_spec_pingpong": TWIN,
    "warp_specialized_pipeline": LADDER | {"block": 1, "stores": 2},
    "cluster_multicast": LADDER | {"cluster": 2, "fence": 2, "stores": 2, "products": 2},
    "persistent_matmul": LADDER | {"cluster": 2, "fence": 2, "stores": 2},
    "matmul": LADDER | {"cluster": 2, "fence": 4, "stores": 2, "warpgroup": 4, "flag": 1},
}
ORDERING = re.compile(r"\b(?!cuda[A-Z])\w*(?:wait|sync|fence|show_)\w*(?:<\d>)?\(|\bwhile \(atomic")


def side_of(target):
    return f"optimized_{target}.cu"


@pytest.mark.parametrize("target", TARGETS)
def test_every_wait_is_found_by_kind(target):
    waits = waits_of(side_of(target))
    assert Counter(wait.kind for wait in waits) == COUNTS[target]
    lines = [
        f"{file}:{number}"
        for file, text in texts_of(side_of(target)).items()
        for number, line in enumerate(text.splitlines(), start=1)
        if ORDERING.search(line.partition("//")[0])
    ]
    assert sorted(lines) == sorted(wait.place for wait in waits), "a line with two waits, or one of a kind that is not known"


def changed(before, after):
    """The lines of one text that are not in the other, and the other way round."""
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    return [[line[2:].strip() for line in lines if line[0] == sign] for sign in "-+"]


@pytest.mark.parametrize("target", TARGETS)
def test_a_mutant_differs_from_its_source_in_one_wait_and_in_delays(target, tmp_path):
    side = side_of(target)
    for i, wait in enumerate(waits_of(side)):
        folder = tmp_path / str(i)
        write(side, folder, wait)
        file = wait.place.split(":")[0]
        for name, text in texts_of(side).items():
            gone, new = changed(bounded(text), (folder / name).read_text())
            if wait.kind != "flag":
                assert (gone, len(new)) == (([wait.text], 1) if name == file else ([], 0))
        if wait.kind == "flag":
            gone, new = changed(texts_of(side)[file], (folder / file).read_text())
            assert (gone, new) == ([wait.text], [wait.text.replace("while", "if")])


def test_a_header_that_is_delayed_has_all_that_it_had(tmp_path):
    write(side_of("matmul"), tmp_path)
    for header, functions in DELAYED.items():
        text = (tmp_path / "common/cuda" / header).read_text()
        places = re.findall(r" delay\(\d+\);", text)
        assert len(places) == len(set(places)) == 2 * len(functions)
        for added in (*places, '#include "delays.cuh"\n', "    uint64_t since = 0;\n", "        since = still_waiting(since);\n"):
            text = text.replace(added, "", 1)
        assert text == (ROOT / "common/cuda" / header).read_text()


def test_loops_that_wait_are_bounded():
    texts = ["    while (!complete) {\n", (ROOT / "ch10/optimized_matmul.cu").read_text()]
    assert [bounded(text).count("still_waiting") for text in texts] == [1, 1]
    assert "while (walk.next()) {" in bounded(texts[1])


def test_a_wait_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="found 0 waits of kind block"):
        without("int x;\n", Wait("file.cu:1", "__syncthreads();", "block"))
    with pytest.raises(ValueError, match="no function barrier_await"):
        delayed("", ("barrier_await",), 0)


def test_what_is_expected_to_survive_is_the_line_of_a_wait():
    assert SURVIVORS.keys() <= {wait.text for target in TARGETS for wait in waits_of(side_of(target))}


@pytest.mark.slow
def test_the_control_compiles_as_the_side_does_and_a_mutant_only_with_its_wait_as_before(tmp_path):
    skip_without_tools()
    target = TARGETS[0]
    control = made(target, tmp_path, cache=BUILD_CACHE)[1]
    assert "serialized" not in control.log
    assert "0 bytes spill stores" in control.log
    waits = {wait.text: wait for wait in waits_of(side_of(target))}
    trace, turn, fence = (next(wait for text, wait in waits.items() if words in text) for words in ("step % ", "tile >= 1", "wgmma_fence"))
    without_trace, without_turn, without_fence = (made(target, tmp_path, wait, BUILD_CACHE)[1].library for wait in (trace, turn, fence))
    assert read_code(without_trace) == read_code(control.library), "is built with -DTRACE alone"
    assert waiting(without_turn) == waiting(control.library) - 1
    assert for_products(without_fence) >= for_products(control.library), "ptxas puts it back"


def waiting(library):
    """How many instructions of a library wait for a barrier in shared memory."""
    return sum("TRYWAIT" in instruction for kernel in read_code(library) for instruction in kernel.instructions)


# --- in the child, on the stand-ins for a GPU

DISTURB = """
extern "C" { int hangs = 0; }
extern "C" int disturb(unsigned, int* gave_up, unsigned long long) { return *gave_up = hangs, 0; }
"""


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    skip_without_compiler()
    folder = tmp_path_factory.mktemp("child")
    for file, text in texts_of(side_of(TARGETS[0])).items():
        (folder / file).write_text(text + DISTURB * (file == side_of(TARGETS[0])))
    build(side_of(TARGETS[0]), folder, folder)
    return folder / side_of(TARGETS[0])


@pytest.fixture
def child(emulated, monkeypatch):
    """What a child says of the library, on a machine of two multiprocessors; `skipped` is the place of the wait that it does without."""
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=0))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    said = []
    monkeypatch.setattr(mutant_child, "tell", lambda **words: said.append(words))

    def run(skipped="", hangs=0, **changes):
        library = ctypes.CDLL(f"{emulated}.so")
        library.on_cpu_set(ctypes.c_uint32(1), LAZINESS["late"], 2, skipped.encode())
        ctypes.c_int.in_dll(library, "hangs").value = hangs
        job = {**json.loads(job_of(TARGETS[0], emulated, f"{emulated}.so")), "shapes": {"small": {"m": 300, "n": 264, "k": 456}}, "runs": 2}
        mutant_child.Child(mutant_child.Job(**job | changes), "cpu").run()
        return said

    return run


@pytest.mark.slow
def test_a_child_runs_as_often_as_it_is_told_where_all_is_right(child):
    assert child() == [*({"run": run, "shape": "small"} for run in (1, 2)), {"found": "SURVIVED", "gpu": "a GPU"}]


def place_of(words):
    return next(wait.place for wait in waits_of(side_of(TARGETS[0])) if words in wait.text)


@pytest.mark.slow
def test_a_child_ends_at_the_first_product_that_is_wrong(child):
    assert child(place_of("if (leads)")) == [{"run": 1, "shape": "small"}, {"found": "WRONG_RESULT"}]


@pytest.mark.slow
@pytest.mark.parametrize(("hangs", "found"), [(0, "CRASHED"), (1, "TIMEOUT")])
def test_a_launch_that_fails_is_a_hang_where_a_wait_says_so(child, hangs, found):
    at, end = child(hangs=hangs, shapes={"refused": {"m": 8, "n": 12, "k": 8}})
    assert (at["shape"], end["found"]) == ("refused", found)
    assert "launch returned" in end["note"]


# --- what became of it

AT = '{"run": 3, "shape": "deep"}\n'
LOGS = {
    "SURVIVED": (0, AT + '{"found": "SURVIVED", "gpu": "a GPU"}\n'),
    "WRONG_RESULT": (0, AT + '{"found": "WRONG_RESULT"}\n'),
    "TIMEOUT": (1, AT + '{"found": "TIMEOUT", "note": "CUDA error: unspecified launch failure"}\nterminate called\n'),
    "CRASHED": (0, AT + '{"found": "CRASHED", "note": "CUDA error: an illegal memory access was encountered"}\n'),
}


@pytest.mark.parametrize("found", LOGS)
def test_an_end_that_was_told_is_what_became_of_it(found):
    outcome = judged(*LOGS[found])
    assert (outcome.found, outcome.run, outcome.shape) == (found, 3, "deep")


@pytest.mark.parametrize(("code", "found"), [(None, "TIMEOUT"), (-11, "CRASHED"), (1, "CRASHED")])
def test_a_child_that_did_not_tell_its_end_was_killed_or_crashed(code, found):
    assert judged(code, AT).found == found


def test_a_child_that_tells_that_all_is_right_and_then_crashes_has_crashed():
    assert judged(-6, LOGS["SURVIVED"][1]).found == "CRASHED"


@pytest.mark.parametrize("log", ["", "RuntimeError: No CUDA GPUs are available\n"])
def test_a_child_that_never_ran_says_nothing_of_a_wait(log):
    with pytest.raises(ToolFailed, match="before the first run"):
        judged(1, log)


@pytest.mark.slow
def test_a_child_without_a_gpu_or_a_library_never_runs(tmp_path):
    job = job_of(TARGETS[0], tmp_path / "side.cu", tmp_path / "no.so")
    with pytest.raises(ToolFailed, match=r"no\.so"):
        judged(*child_of(job, tmp_path / "log", 100))


@pytest.mark.parametrize("sanitized", [False, True])
def test_a_target_with_clusters_runs_in_those_that_are_timed(sanitized):
    clusters = {
        target: {shape.get("clusterDim") for shape in json.loads(job_of(target, "x", "y", sanitized))["shapes"].values()}
        for target in TARGETS
    }
    assert clusters == {target: {None} for target in TARGETS} | {"matmul": {2}, "persistent_matmul": {2}, "cluster_multicast": {4}}


def measure(tmp_path, ends, sanitize=None, findings=()):
    """The document of a target whose children end so, by the folder of their source; `findings` names those that a sanitizer accuses."""

    def runner(job, log, limit_s, under=()):
        name = Path(json.loads(job)["source"]).parent.name
        assert name != "same", "has the control's machine code"
        finding = "========= Error: Potential WAW hazard detected\n" if under and name in findings else ""
        return ends[name][0], ends[name][1] + finding

    texts = {"one": "wgmma_fence();", "two": "barrier_wait(&shared.loaded[at.stage], at.parity);", "same": "__syncthreads();"}
    mutants = [
        Mutant(Wait(f"file.cu:{number}", text, "block"), Path(name, "side.cu"), Path(name, "side.so"), name == "same", name == "one")
        for number, (name, text) in enumerate(texts.items(), start=1)
    ]
    options = argparse.Namespace(folder=tmp_path, sanitize=sanitize)
    return measured(TARGETS[0], (Path("control/side.cu"), Path("control/side.so")), mutants, options, runner)


def ends_of(**ends):
    return {name: LOGS[end] for name, end in ({"control": "SURVIVED"} | ends).items()}


def test_a_table_says_what_was_expected_and_what_was_found(tmp_path):
    document = measure(tmp_path, ends_of(one="SURVIVED", two="WRONG_RESULT"))
    assert document["gpu"] == "a GPU"
    assert [(row["expected"], row["found"]) for row in document["waits"]] == [
        ("SURVIVED", "SURVIVED"),
        ("missed", "WRONG_RESULT"),
        ("missed", "NO_CODE"),
    ]
    assert json.loads(json.dumps(document)) == document
    _, _, one, two, same = table_of(document["waits"]).splitlines()
    assert one == f"| file.cu | `wgmma_fence();` |  | SURVIVED | SURVIVED |  | ptxas put it back; {SURVIVORS['wgmma_fence();']} |"
    assert two.endswith("| missed | WRONG_RESULT | 3, deep |  |")
    assert same.endswith("| missed | NO_CODE |  | the machine code is the same without it |")


def test_waits_with_one_text_are_told_apart_by_which_of_them_they_are():
    texts = ["wait(1);  // once", "wait(2);", "wait(1);", "wait(1);  // and again"]
    waits = [(f"{file}:{number}", text) for file in ("a.cu", "b.cu") for number, text in enumerate(texts[: 4 if file == "a.cu" else 2])]
    assert without_a_wait.named(waits) == [
        ("a.cu", "wait(1);", "1st of 3"),
        ("a.cu", "wait(2);", ""),
        ("a.cu", "wait(1);", "2nd of 3"),
        ("a.cu", "wait(1);", "3rd of 3"),
        ("b.cu", "wait(1);", ""),
        ("b.cu", "wait(2);", ""),
    ]
    assert [name[2] for name in without_a_wait.named([("a.cu:1", "wait();")] * 4)][-1] == "4th of 4"


TABLE = Path(without_a_wait.__file__).with_name("without_a_wait_h200.md")
# What is worded otherwise than when the table was written, by its wording there; above the table that is said.
REWORDED = {
    ("shared_trace.cuh", "barrier_wait(&shared.loaded[step % Shared::STAGES], step / Shared::STAGES % 2);", ""): (
        "shared_trace.cuh",
        "barrier_wait(&seen[step % Shared::STAGES], step / Shared::STAGES % 2);",
        "",
    )
}


def committed():
    """File, wait and occurrence of every row of the committed table."""
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    assert rows[0] == ["file", "wait", "occurrence", "expected", "found", "in run", "note"]
    return [(file, wait.strip("`").replace("\\|", "|"), occurrence) for file, wait, occurrence, *_ in rows[2:]]


def test_the_committed_table_has_the_waits_that_there_are():
    today = without_a_wait.named((wait.place, wait.text) for wait in waits_of(side_of(TARGETS[0])))
    assert len(set(today)) == len(today)
    assert [REWORDED.get(row, row) for row in committed()] == today


@pytest.mark.parametrize("found", ["WRONG_RESULT", "TIMEOUT", "CRASHED"])
def test_nothing_is_said_where_the_control_is_wrong(found, tmp_path):
    with pytest.raises(ToolFailed, match=f"with all its waits: found {found} in run 3, deep"):
        measure(tmp_path, ends_of(control=found, one="SURVIVED", two="SURVIVED"))


@pytest.mark.parametrize(
    ("findings", "found"), [((), "SURVIVED"), (("one",), "SANITIZER"), (("one", "control"), "SURVIVED"), (("two",), "SURVIVED")]
)
def test_a_finding_in_a_survivor_counts_where_the_control_has_none(findings, found, tmp_path, monkeypatch):
    monkeypatch.setattr(without_a_wait, "tool", lambda *_: "compute-sanitizer")
    document = measure(tmp_path, ends_of(one="SURVIVED", two="CRASHED"), [], findings)
    assert [row["found"] for row in document["waits"]] == [found, "CRASHED", "NO_CODE"]
    assert bool(document["waits"][0]["findings"]) == (found == "SANITIZER")


def test_the_command_fails_where_it_cannot_say_anything_and_not_where_it_is_to_build(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(without_a_wait, "build_all", lambda *_: ((Path("x"), Path("y")), []))
    monkeypatch.setattr(without_a_wait, "describe_machine", lambda _: SimpleNamespace(gpus=()))
    assert main([TARGETS[0], "--build-only"]) == 0
    assert main([TARGETS[0]]) == 1
    assert "no CUDA device" in capsys.readouterr().err

    def fails(*_):
        raise SideFailure("BUILD_FAILED", "it does not compile")

    monkeypatch.setattr(without_a_wait, "build_all", fails)
    assert main([TARGETS[0], "--build-only"]) == 1


def test_the_command_writes_the_table_and_is_content_with_survivors(tmp_path, monkeypatch, capsys):
    document = measure(tmp_path, ends_of(one="SURVIVED", two="SURVIVED"))
    monkeypatch.setattr(without_a_wait, "build_all", lambda *_: ((Path("x"), Path("y")), []))
    monkeypatch.setattr(without_a_wait, "describe_machine", lambda _: SimpleNamespace(gpus=("a GPU",)))
    monkeypatch.setattr(without_a_wait, "measured", lambda *_: document)
    assert main([TARGETS[0], "--json", str(tmp_path / "table.json")]) == 0
    assert json.loads((tmp_path / "table.json").read_text()) == document
    assert table_of(document["waits"]) in capsys.readouterr().out
