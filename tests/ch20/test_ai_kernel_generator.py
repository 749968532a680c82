"""ch20/ai_kernel_generator.py: what it proposes, what it accepts, and that both sides of its pair are one source with other constants."""

import json
import sys

import pytest

from common.python.errors import BenchmarkError
from common.python.pairs.discovery import discover
from common.python.processes.sandbox import Ended, Limits
from common.python.project import PROJECT_ROOT
from tests.ch20.conftest import FOLDER


@pytest.fixture(scope="module")
def start():
    return (FOLDER / "baseline_ai_kernel_generator.cu").read_text()


def below_comments(source):
    return source[source.index("#include") :]


def test_the_optimized_side_is_the_start_with_other_constants(generator, start):
    found = (FOLDER / "optimized_ai_kernel_generator.cu").read_text()
    constants = generator.constants_of(found)
    assert constants != generator.constants_of(start)
    assert below_comments(generator.with_constants(start, constants)) == below_comments(found)
    assert all(value in generator.choices_of(start)[name] for name, value in constants.items())


def test_a_search_climbs_to_the_best_neighbour_and_tries_nothing_twice(generator, start):
    def judge(number, source):
        constants = generator.constants_of(source)
        speedup = constants["WIDTH"] + min(constants["KEPT"], 2) - abs(constants["THREADS"] - 512) / 1024
        return "PASSED", "", speedup, speedup - 0.01, speedup + 0.01

    made = list(generator.search(start, judge, 200))
    best = max(made, key=lambda attempt: attempt.speedup)
    assert (best.constants["THREADS"], best.constants["WIDTH"]) == (512, 8)
    assert best.constants["KEPT"] >= 2
    assert len({tuple(attempt.constants.values()) for attempt in made}) == len(made)


def test_a_refused_candidate_is_kept_and_is_no_parent(generator, start):
    """However fast it claims to be."""
    made = list(generator.search(start, lambda number, source: ("WRONG_RESULT", "off by 3", 100.0, 99.0, 101.0), 5))
    assert [(attempt.parent, attempt.status) for attempt in made] == [(0, "WRONG_RESULT")] * 5


def test_a_gain_within_noise_is_no_parent(generator, start):
    made = list(generator.search(start, lambda number, source: ("PASSED", "", 1.01, 0.99, 1.03), 5))
    assert [attempt.parent for attempt in made] == [0] * 5
    clear = list(generator.search(start, lambda number, source: ("PASSED", "", 1.01, 1.005, 1.015), 2))
    assert [attempt.parent for attempt in clear] == [0, 1]


PLAIN = """// Baseline: a tile.
constexpr int WIDE = 32, HIGH = 8;  // threads
constexpr int TILE = 2048;
constexpr int SIZE = 24576, AREA = WIDE * HIGH, BLOCKS = 2 * 132;
constexpr float SCALE = 4;
int grid(int n) { int half = 16; return n / half; }
"""


def test_without_tries_each_power_of_two_may_be_another(generator):
    assert generator.constants_of(PLAIN) == {"WIDE": 32, "HIGH": 8, "TILE": 2048}
    assert generator.choices_of(PLAIN) == {
        "WIDE": [4, 8, 16, 32, 64, 128, 256],
        "HIGH": [1, 2, 4, 8, 16, 32, 64],
        "TILE": [256, 512, 1024, 2048],  # no larger than a block may have threads, but for the source's own
    }
    changed = generator.with_constants(PLAIN, {"WIDE": 4, "HIGH": 64, "TILE": 2048})
    assert changed == PLAIN.replace("WIDE = 32, HIGH = 8;", "WIDE = 4, HIGH = 64;")


@pytest.mark.parametrize("target", ["ch06:coalescing", "ch07:transpose", "ch08:occupancy", "ch08:register_pressure"])
def test_baselines_of_other_chapters_can_be_searched(generator, target):
    source = generator.start_of(target).source()
    constants = generator.constants_of(source)
    assert generator.with_constants(source, constants) == source
    made = list(generator.search(source, lambda number, tried: ("PASSED", "", 1.0, 0.9, 1.1) if tried != source else None, 4))
    assert len(made) == 4


class Told:
    """A harness that keeps what it is asked about."""

    def __init__(self):
        self.asked = []

    def judged(self, folder, name):
        self.asked.append((folder, name))


def test_the_best_is_timed_beside_the_optimized_side_without_its_claims(generator, tmp_path):
    harness = Told()
    generator.beside_hand_written(generator.Pair(PROJECT_ROOT / "ch08", "occupancy"), tmp_path, "// found\n", harness)
    ((folder, name),) = harness.asked
    assert name == "occupancy"
    baseline = (folder / "kernels/baseline_occupancy.cu").read_text()
    assert "constexpr int THREADS = 1024;" in baseline
    assert not any(word in baseline for word in ("predicts:", "proves:", "has:"))
    assert (folder / "kernels/optimized_occupancy.cu").read_text() == "// found\n"
    assert generator.beside_hand_written(generator.Pair(PROJECT_ROOT / "ch20", "autotuning"), tmp_path, "", harness) is None


def test_a_candidate_is_a_pair_that_the_harness_is_asked_about(generator, start, tmp_path):
    harness = Told()
    generator.judge_of(generator.Pair(FOLDER, "ai_kernel_generator"), tmp_path, harness)(7, start)
    assert harness.asked == [(tmp_path / "attempt_007", "ai_kernel_generator")]
    files = {path.name for path in (tmp_path / "attempt_007/kernels").iterdir()}
    assert {f"{side}_ai_kernel_generator.cu" for side in ("baseline", "optimized")} | {"shared_add_norm.cuh"} < files
    assert (tmp_path / "attempt_007" / "kernels" / "optimized_ai_kernel_generator.cu").read_text() == start


@pytest.mark.parametrize(("folder", "name"), [("tests/adversaries/cheats", "heavy"), ("ch14", "triton_tma"), ("ch09", "cutlass_gemm")])
def test_a_workload_that_imports_another_is_a_whole_tree(generator, tmp_path, folder, name):
    suffix = "".join({path.suffix for path in (PROJECT_ROOT / folder).glob(f"baseline_{name}.*")}) or ".py"
    made = generator.Pair(PROJECT_ROOT / folder, name, suffix).written(tmp_path / "one", "", "")
    tree = discover(made)
    assert (name in {pair.name for pair in tree.pairs}, tree.problems) == (True, {})


@pytest.mark.parametrize(
    ("target", "found"), [("ch20:no_such", "no ch20/baseline_no_such.cu"), ("ch06:add", "no constant in baseline_add.cu")]
)
def test_a_target_without_anything_to_change_is_refused_in_a_sentence(generator, target, found):
    with pytest.raises(SystemExit, match=found):
        generator.start_of(target)


TIMING = '{"speedups": {"optimized": {"estimate": 1.5, "low": 1.4, "high": 1.6}}, "time_ns": {"optimized": {"estimate": 2000.0}}}'
TIMED = f'{{"rows": [{{"target": "a:k", "status": "PASSED", "reason": "", "timings": {{"": {TIMING}}}}}]}}'
REFUSED = '{"rows": [{"target": "a:k", "status": "WRONG_RESULT", "reason": "off by 3", "timings": {}}]}'


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        (TIMED, ("PASSED", "", 1.5, 1.4, 1.6, 2000.0)),
        (REFUSED, ("WRONG_RESULT", "off by 3")),
        ("no document", ("ERROR", "no document")),
        ("", ("ERROR", "exit code 0")),
        (TIMED + REFUSED, ("ERROR", (TIMED + REFUSED)[-500:])),  # one of them is not the harness's
    ],
)
def test_what_the_harness_says_is_what_an_attempt_has(generator, tmp_path, monkeypatch, printed, found):
    monkeypatch.setattr(generator, "run_in_sandbox", lambda *_: Ended(0, printed, ""))
    assert harness_of(generator).judged(tmp_path, "k") == found


def test_one_that_breaks_a_limit_is_refused_whatever_was_printed(generator, tmp_path, monkeypatch):
    monkeypatch.setattr(generator, "run_in_sandbox", lambda *_: Ended(-9, TIMED, "", "took more than 3 s"))
    found = harness_of(generator).judged(tmp_path, "k")
    assert found == ("ERROR", "its processes took more than 3 s; expected to end by themselves")


def test_no_verdict_of_a_harness_that_was_killed_counts(generator, tmp_path, monkeypatch):
    monkeypatch.setattr(generator, "run_in_sandbox", lambda *_: Ended(-9, TIMED, ""))
    assert harness_of(generator).judged(tmp_path, "k") == ("ERROR", "signal 9 ended the harness; expected a verdict")


def harness_of(generator):
    return generator.Harness(("--device", "auto"), "cpu", Limits(1 << 30, 60.0))


def test_the_page_leads_to_prompts_and_sources_and_tells_what_they_cost(generator):
    files = {"prompt": "attempt_001/prompt.md", "source": "attempt_001/kernels/optimized_x.cu"}
    spent = {"time_ns": 2500.0, "seconds": 31.5, "tokens": 1234}
    made = [generator.Attempt(1, 0, {}, "PASSED", "", 1.25, **spent, **files), generator.Attempt(2, 1, {}, "NO_CODE", "found <none>")]
    text = generator.page("ch20:x", made)
    for file in files.values():
        assert f"<a href={file}>" in text
    for told in ("2.5 \u00b5s", "31.5 s", "1234", "found &lt;none&gt;"):
        assert f"<td>{told}" in text


def test_the_page_shows_the_lineage_and_the_best_time(generator):
    told = [(1, 0, "PASSED", 1.25), (2, 1, "WRONG_RESULT", 9.0), (3, 1, "PASSED", 2.0), (4, 3, "PASSED", 1.6)]
    made = [generator.Attempt(number, parent, {"WIDTH": number}, status, "<off>", speedup) for number, parent, status, speedup in told]
    text = generator.page("ch20:x", made)
    assert "start \u2192 1 \u2192 3." in text
    assert text.count("<circle") == 4  # with the start
    assert text.count("<tr class=path>") == 2
    assert "&lt;off&gt;" in text
    assert sys.modules["shared_attempts_plot"].best_by_attempt(made) == [0.8, 0.8, 0.5, 0.5]
    assert sys.modules["shared_attempts_page"].lineage(made[1:2]) == [0]
    assert [text.count(f">{tick}</text>") for tick in ("1", "0.5", "0.25")] == [1, 1, 0]  # the scale doubles, and has the times alone


PRINTED = """{"run_id": "r", "rows": [{"target": "a:occupancy", "status": "PASSED", "reason": "", "origin": {"gpus": ["NVIDIA H200 GPU-1"]},
    "timings": {"": {"speedups": {"optimized": {"estimate": 2.0, "low": 1.9, "high": 2.1}},
    "time_ns": {"optimized": {"estimate": 1500.0}}}}}]}"""


def test_a_search_leaves_a_record_with_its_start_its_attempts_and_where_it_ran(generator, tmp_path, monkeypatch, capsys):
    def run(script, arguments, folder, limits):
        (folder / "run").mkdir()
        (folder / "run/metrics.json").write_text(PRINTED)
        return Ended(0, PRINTED, "")

    monkeypatch.setattr(generator, "run_in_sandbox", run)
    monkeypatch.setattr(generator, "require_sandbox", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["", "ch08:occupancy", "--attempts", "2", "--out", str(tmp_path / "out")])
    generator.main()
    told = json.loads((tmp_path / "out/attempts.json").read_text())
    assert (told["target"], told["start"], told["origin"]) == ("ch08:occupancy", {"THREADS": 256}, {"gpus": ["NVIDIA H200 GPU-1"]})
    assert [attempt["constants"] for attempt in told["attempts"]] == [{"THREADS": 512}, {"THREADS": 1024}]
    assert [attempt["source"] for attempt in told["attempts"]] == [f"attempt_00{n}/kernels/optimized_occupancy.cu" for n in (1, 2)]
    assert [attempt["time_ns"] for attempt in told["attempts"]] == [1500.0] * 2
    assert told["beside_hand_written"] == {"estimate": 2.0, "low": 1.9, "high": 2.1}
    assert "beside the pair's optimized side: 2.000x [1.900, 2.100] as fast" in capsys.readouterr().out


def test_without_a_sandbox_nothing_is_tried(generator, tmp_path, monkeypatch):
    def lacking(_):
        raise BenchmarkError("there is no sandbox here (unshare: no); expected one")

    monkeypatch.setattr(generator, "require_sandbox", lacking)
    monkeypatch.setattr(sys, "argv", ["", "ch08:occupancy", "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit, match=r"there is no sandbox here .*, or `--allow` of what may go without: network,files,signals"):
        generator.main()
    assert not (tmp_path / "out").exists()


def test_only_restrictions_can_be_left_out(generator, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["", "ch08:occupancy", "--out", str(tmp_path / "out"), "--allow", "network,sockets"])
    with pytest.raises(SystemExit, match="--allow: found sockets; expected some of network,files,signals,memory,time"):
        generator.main()
