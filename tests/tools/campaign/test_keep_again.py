"""What runs of accepted rows said is kept, whatever it was, once, by GPU model; and the page counts and lists it."""

import re

import pytest

from common.python.errors import Status
from common.python.results import Change, Interval, Metrics, Origin, PairResult, Verdict, VerdictKind
from common.python.storage import document_text
from tools.campaign.keep_again import main
from tools.campaign.repeats import read_repeats
from tools.checks.repeat_page import repeat_page, repeat_picture

H200 = "NVIDIA H200 GPU-1"


def a_verdict(kind, low, high, **fields):
    change = Change(kind=kind, percent=Interval(estimate=(low + high) / 2, low=low, high=high), band_percent=5, p_worse=0.5)
    return Verdict(kind=kind, sentence=f"speedup [{low}, {high}]; more", changes={"speedup": change}, **fields)


def a_row(pair="a", *, gpus=(H200,), date="2026-11-30T01:00:00+00:00", status=Status.PASSED, reason="", **verdicts):
    origin = Origin(gpus=gpus, commit="0123456789", date=date)
    return PairResult(
        target=f"ch01:{pair}", workload_file="ch01/workload_a.py", status=status, reason=reason, verdicts=verdicts, origin=origin
    )


@pytest.fixture
def keep(tmp_path, capsys):
    """Keep rows in a tree of one pair; the exit code, what was said, and the files."""
    (tmp_path / "ch01").mkdir()
    (tmp_path / "ch01" / "workload_a.py").touch()
    (tmp_path / "tools" / "campaign").mkdir(parents=True)

    def keep(*found):
        path = tmp_path / "metrics.json"
        path.write_text(document_text(Metrics(run_id="a run", rows=found)))
        code = main([str(path)], tmp_path)
        return code, capsys.readouterr().err, {file.gpu: file.rows for file in read_repeats(tmp_path)}

    return keep


SAME, WORSE = a_verdict(VerdictKind.SAME, -1, 1), a_verdict(VerdictKind.REGRESSED, -20, -10)


def test_each_timing_is_kept_by_gpu_model_and_a_run_only_once(keep):
    code, _, files = keep(a_row(default=SAME, long=WORSE), a_row("b", gpus=(H200, "NVIDIA H200 GPU-2"), default=SAME))
    assert code == 0
    assert [(each.shape, each.kind, each.figure, each.band_percent) for each in files["h200"]] == [
        ("default", "SAME", "speedup", 5),
        ("long", "REGRESSED", "speedup", 5),
    ]
    assert [each.target for each in files["2xh200"]] == ["ch01:b"]
    assert keep(a_row(default=SAME, long=WORSE))[2] == files
    later = a_row(default=WORSE, date="2026-12-01T01:00:00+00:00")
    assert [each.kind for each in keep(later)[2]["h200"]] == ["SAME", "REGRESSED", "REGRESSED"]


def test_a_row_that_failed_is_kept_too_without_paths_of_the_machine(keep):
    failed = a_row(status=Status.UNPROVEN, reason="overlap: found 33 %; repeat: /opt/python verify")
    assert [(each.status, each.kind, each.said) for each in keep(failed)[2]["h200"]] == [("UNPROVEN", None, "overlap: found 33 %")]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (a_row(default=a_verdict(VerdictKind.SAME, -1, 1, accepted=True)), "found default accepted by this run"),
        (a_row(default=Verdict(kind=VerdictKind.NEW, sentence="nothing is expected")), "found nothing that is expected of it"),
        (a_row(gpus=(), default=SAME), "found no GPU that it ran on"),
        (a_row(date="", default=SAME), "found no date"),
        (a_row(default=SAME).model_copy(update={"workload_file": "ch01/workload_b.py"}), "found no ch01/workload_b.py in this tree"),
    ],
)
def test_what_says_nothing_about_an_accepted_row_is_refused_and_nothing_is_written(keep, row, said):
    code, error, files = keep(a_row("b", default=SAME), row)
    assert (code, files) == (1, {})
    assert said in error


def test_the_page_counts_all_and_lists_those_that_are_not_the_same(keep, tmp_path):
    failed = a_row("c", status=Status.UNPROVEN, reason="overlap: found 33 %")
    keep(a_row(default=SAME, long=WORSE), failed)
    page = repeat_page(read_repeats(tmp_path), tmp_path)
    assert "| H200 | 3 | 3 | 1 | 0 | 0 | 1 | 1 |" in page
    listed = page.partition("## Not the same")[2]
    assert re.findall(r"\[(ch01:[^\]]*)\]", listed) == ["ch01:a @long", "ch01:c"]
    assert "| REGRESSED | speedup [-20, -10] |" in listed
    assert "[ch01:c](../../ch01/README.md#c) | H200 | 2026-11-30 | UNPROVEN | overlap: found 33 % |" in listed


def test_the_page_says_what_a_later_run_of_the_same_timing_said(keep, tmp_path):
    keep(a_row(default=WORSE, long=WORSE))
    keep(a_row(default=SAME, date="2026-12-01T01:00:00+00:00"), a_row("b", default=SAME, date="2026-12-02T01:00:00+00:00"))
    keep(a_row(date="2026-11-29T01:00:00+00:00", long=SAME))
    counted, _, listed = repeat_page(read_repeats(tmp_path), tmp_path).partition("## Not the same")
    assert "| H200 | 5 | 3 | 2 | 0 | 0 | 1 | 0 |" in counted  # of the last runs
    assert re.findall(r"\[(ch01:[^\]]*)\].* \| ([A-Z]*) \|$", listed, re.MULTILINE) == [("ch01:a", "SAME"), ("ch01:a @long", "")]


def test_a_worse_change_lies_further_left_and_higher_and_one_beyond_the_axis_at_its_edge(keep, tmp_path):
    far = a_verdict(VerdictKind.REGRESSED, -90, -80)
    keep(a_row(default=SAME, long=WORSE, far=far))
    svg = repeat_picture(read_repeats(tmp_path))
    dots = [(float(x), float(y)) for x, y in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="4" fill="[^"]*"><title>', svg)]
    assert dots == sorted(dots)
    assert len(dots) == 3
    assert dots[0][0] == 380.0


def test_without_a_run_the_page_says_so(tmp_path):
    assert "None has run again yet." in repeat_page([], tmp_path)
    assert repeat_picture([]).startswith("<svg")
