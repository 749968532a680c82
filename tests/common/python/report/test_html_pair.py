"""A pair's part of the report: why, the code, every sample, the tables and the checks."""

import re

import pytest

from common.python.pairs.sources import git_in
from common.python.report.charts import BOX_HEIGHT
from common.python.report.html import html
from common.python.results import Block, Share, Unit
from common.python.settings import Settings
from tests.common.python.pairs.test_revisions import git
from tests.support.factories import a_proof, a_row, a_run, a_side, a_timing, an_interval
from tests.support.html_page import Page
from tests.support.profiles import profiled_row


@pytest.fixture(scope="module")
def page():
    timing = a_timing()
    shares = {side: Share(key="dram", share=0.5, ceiling_ns=1000.0, floor_ns=1000.0, at_held_clock=None) for side in timing.time_ns}
    return Page(html(a_run(), [a_row(timings={"default": timing.model_copy(update={"shares": shares})})]))


def part(page, title):
    """The part of the first article that `title` begins."""
    return next(text for tag in ("section", "details") for found, text in page.all(tag) if text.startswith(title))


def test_why_names_the_idea_the_expectation_and_the_proofs():
    sides = {"baseline": a_side("baseline", directives={"allows": "sync"}), "optimized": a_side(directives={"expects": "3x, 4 + 4 bytes"})}
    row = a_row(idea="turned in shared memory", sides=sides, proofs=(a_proof(), a_proof("unchecked", "launches == 1")))

    assert part(Page(html(a_run(), [row])), "Why") == (
        "Why Idea turned in shared memory Allowed in a step of baseline sync Expected 3x, 4 + 4 bytes "
        "Proven UTCHMMA present in optimized Not checked launches == 1 in optimized"
    )


def test_beside_times_of_a_cpu_a_prediction_says_that_it_is_of_a_gpu():
    sides = {"baseline": a_side("baseline"), "optimized": a_side(directives={"expects": "3x, 4 + 4 bytes"})}
    row = a_row(sides=sides, timings={"cpu": a_timing(device="cpu", clock="host")})
    assert "Expected on a GPU 3x, 4 + 4 bytes" in part(Page(html(a_run(), [row])), "Why")


def test_every_sample_of_every_side_and_unit_is_drawn(page):
    first = page.all("figure", class_="panel")[:3]

    assert [found["class"].split()[1] for found, _ in first] == ["optimized", "baseline", "optimized"]
    assert "6 process pairs, a dot each" in first[0][1]
    assert "18 samples" in first[1][1]
    paths = [found["d"] for found, _ in page.all("path", class_="dots")][:3]
    assert [path.count("h0") for path in paths] == [6, 18, 18]


def test_the_speedup_of_a_process_pair_is_the_ratio_of_its_medians():
    def unit(baseline, optimized):
        blocks = {"baseline": (Block(seed=1, samples_ns=baseline),), "optimized": (Block(seed=2, samples_ns=optimized),)}
        return Unit(order=("baseline", "optimized"), blocks=blocks)

    units = (unit((100.0, 300.0, 100.0), (50.0, 50.0, 1.0)), unit((300.0, 300.0, 1.0), (100.0, 900.0, 100.0)))
    timing = a_timing({"baseline": 250.0, "optimized": 100.0}, units=units, speedups={"optimized": an_interval(2.5, 0.1)})
    page = Page(html(a_run(), [a_row(timings={"default": timing})]))
    figure = next(text for text in page.texts("figure", class_="panel") if text.startswith("Speedup of optimized"))
    first, step = map(int, re.findall(r"m\d+([+-]\d+)h0", page.all("path", class_="dots")[0][0]["d"]))

    # 2x and 3x lie 20 % below and above the estimate, at the bottom and at the top of the plot.
    assert "-20 %" in figure
    assert "+20 %" in figure
    assert first > 0.9 * BOX_HEIGHT
    assert first + step < 0.1 * BOX_HEIGHT


def test_the_clock_that_samples_held_is_told_and_drawn_where_it_moved():
    def timing(*clocks):
        blocks = tuple(Block(seed=1, samples_ns=(5e4, 5.1e4), sm_clock_hz=(clock, clock)) for clock in clocks)
        return a_timing({"optimized": 5e4}, units=(Unit(order=("optimized",), blocks={"optimized": blocks}),) * 6)

    steady, moving = (Page(html(a_run(), [a_row(timings={"default": timing(*clocks)})])) for clocks in ((1.98e9, 1.975e9), (1.98e9, 1.2e9)))

    assert len(steady.all("figure", class_="panel")) == 1
    assert "24 samples at 1975 to 1980 MHz" in part(steady, "Samples")
    assert "SM clock of optimized 1590 MHz" in part(moving, "Samples")


def test_calls_of_a_sample_and_marks_at_the_edge_are_told():
    blocks = {"optimized": (Block(seed=1, samples_ns=(*[100.0, 101.0] * 20, 900.0)),)}
    timing = a_timing({"optimized": 100.0}, units=(Unit(order=("optimized",), blocks=blocks),), calls_per_sample={"optimized": 8})

    assert "41 samples of 8 calls; 1 beyond the edge, the furthest +800 %" in part(
        Page(html(a_run(), [a_row(timings={"default": timing})])), "Samples"
    )


def test_tables_of_one_pair_do_not_repeat_its_name(page):
    (table,) = [text for text in page.texts("section") if text.startswith("Each side")][:1]

    assert "ch07:transpose" not in table
    assert table.startswith("Each side side time [95 %] share of ceiling [95 %] largest error")  # and no column that says nothing


def test_why_a_side_is_faster_is_told_once():
    texts = html(a_run(), [profiled_row()])
    assert texts.count("so its warps waited less") == 1
    assert texts.count("Counters that moved") == 1


def test_checks_are_told_by_shape_and_side(page):
    assert "n=33 before timing baseline 1 1.5e-06 abs, 2.5e-07 rel" in part(page, "Checked against the reference")


@pytest.fixture
def tree(tmp_path):
    for name, text in {
        "workload_x.py": '"""Work."""\n',
        "baseline_x.cu": "// Baseline\nint a = 1;\n",
        "optimized_x.cu": "// Optimized\nint a = 1;\n",
        "library_x.py": '"""Library."""\n',
        "other.py": "pass\n",
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def titles_and_notes(tree, files, **environment):
    sides = {side: a_side(file=file) for side, file in files.items()}
    row = a_row(workload_file="workload_x.py", sides=sides, timings={})
    page = Page(html(a_run(Settings(root=tree), environment=environment), [row]))
    return page.texts("summary"), page


def test_sides_are_shown_as_the_diff_from_the_one_before_and_the_library_whole(tree):
    summaries, page = titles_and_notes(
        tree,
        {"baseline": "baseline_x.cu", "optimized": "optimized_x.cu", "library": "library_x.py"},
        root={"commit": "0123456789abc", "dirty": True},
    )

    assert summaries[:3] == [
        "Diff: baseline_x.cu → optimized_x.cu 1 lines added, 1 removed",
        "Library: library_x.py 1 lines",
        "Workload: workload_x.py 1 lines",
    ]
    assert page.texts("span", class_="removed") == ["// Baseline"]
    assert page.texts("span", class_="added") == ["// Optimized"]
    assert "as the file is now; measured at commit 0123456789 with changes" in page.texts("p", class_="note")


def test_a_side_of_another_revision_is_shown_as_git_has_it_with_what_it_imported(tree):
    git(tree, "init", "-q")
    (tree / "shared_x.cu").write_text("int b = 1;\n")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "first")
    commit = git_in("", tree, "rev-parse", "HEAD").stdout.strip()
    for name in ("optimized_x.cu", "shared_x.cu"):
        (tree / name).write_text((tree / name).read_text().replace("= 1", "= 2"))
    (tree / "new_x.cu").touch()
    sides = {
        "baseline": a_side(file="optimized_x.cu at HEAD", imports=("shared_x.cu at HEAD",)),
        "optimized": a_side(file="optimized_x.cu", imports=("new_x.cu",)),
    }
    row = a_row(workload_file="workload_x.py", sides=sides)

    page = Page(html(a_run(Settings(root=tree, against="HEAD"), against=commit), [row]))
    assert page.texts("summary")[:4] == [
        "Diff: optimized_x.cu at HEAD → optimized_x.cu 1 lines added, 1 removed",
        "Imported by one side: new_x.cu 1 lines",
        "Diff: shared_x.cu at HEAD → shared_x.cu 1 lines added, 1 removed",
        "Workload: workload_x.py 1 lines",
    ]
    assert page.texts("span", class_="removed") == ["int a = 1;", "int b = 1;"]
    assert "Speedup over the side at HEAD" in page.texts("h2")
    assert {"at HEAD", "now"} <= {text.split(" ↕")[0] for text in page.texts("th")}

    unknown = Page(html(a_run(Settings(root=tree, against="HEAD")), [row])).texts("summary")
    assert f"not shown: git has no optimized_x.cu at HEAD in {tree}" in unknown[0]


def test_sides_in_two_languages_are_shown_whole(tree):
    summaries, page = titles_and_notes(tree, {"baseline": "other.py", "optimized": "optimized_x.cu"})

    assert [summary.split(":")[0] for summary in summaries[:2]] == ["Baseline", "Optimized"]
    assert page.texts("span", class_="added") == []
    assert "as the file is now; measured outside a git checkout" in page.texts("p", class_="note")


def test_a_file_that_cannot_be_shown_says_so_and_nothing_outside_the_root_is(tree):
    (tree / "binary.py").write_bytes(b"\xff\xfe\x00")
    outside = tree.parent / "secret.py"
    outside.write_text("secret = 1\n")
    (tree / "link.py").symlink_to(outside)

    for file, note in {
        "gone.py": "gone.py: No such file or directory",
        "binary.py": "binary.py is not UTF-8 text",
        "../secret.py": "is not under",
        str(outside): "is not under",
        "link.py": "is not under",
    }.items():
        summaries, page = titles_and_notes(tree, {"optimized": file})
        assert "not shown: " in summaries[0]
        assert note in summaries[0]
        assert "secret = 1" not in " ".join(page.texts("article"))


def test_a_sweep_is_drawn_as_a_curve_and_no_other_run_is():
    timings = {f"n={n}": a_timing({"baseline": 2.0 * n, "optimized": 1.0 * n}) for n in (1024, 2048)}
    run, row = a_run(Settings(sweep={"n": ("1024", "2048")})), a_row(timings=timings)
    page = Page(html(run, [row]))
    assert "Time over n: baseline, optimized" in part(page, "Sweep of n")
    assert "A line a side: baseline with hollow dots, optimized with filled dots." in part(page, "Sweep of n")
    assert len(page.all("circle", class_="reach")) >= 4
    assert "Sweep of" not in html(a_run(), [row])
