"""The HTML report is whole, needs nothing else, says what the run says and nothing that a file slips in."""

import base64
import hashlib
import re

import pytest

from common.python.errors import BenchmarkError, Status
from common.python.report.html import html
from common.python.results import Block, Interval, Share, Unit
from common.python.settings import Settings
from tests.support.factories import (
    a_change,
    a_failure,
    a_proof,
    a_recorded_timing,
    a_row,
    a_run,
    a_side,
    a_timing,
    a_verdict,
    an_interval,
    recorded_ladder,
)
from tests.support.html_page import Page

SCRIPT = "</script><script>alert(1)</script>"
NASTY = f"<img src=x onerror=alert(1)> \"'&{{{{ 7 * 7 }}}} {SCRIPT} </style> ${{x}} %3Cb%3E"


def a_ladder():
    return a_timing({"baseline": 8e6, "smem": 4e6, "library": 2e6})


def with_shares(timing):
    shares = {side: Share(key="dram", share=0.5, ceiling_ns=1000.0, floor_ns=1000.0, at_held_clock=None) for side in timing.time_ns}
    return timing.model_copy(update={"shares": shares})


ROWS = [
    a_row(
        idea="the tile is turned in shared memory",
        proofs=(a_proof(), a_proof("unchecked", "counter x < 0.2 x baseline")),
        verdicts={"default": a_verdict("REGRESSED", "speedup -3.0 %", changes={"speedup": a_change("REGRESSED", -3.0)})},
        timings={"default": with_shares(a_timing())},
    ),
    a_row("ch08:ladder", timings={"small": a_ladder(), "large": with_shares(a_ladder())}),
    a_row("ch07:copy_optimized", timings={"default": a_timing({"optimized": 36_700.0})}),
    a_row("ch14:checked", timings={}, notes=("checked, and by its workload not timed on a CPU",)),
    a_failure(),
    a_failure(Status.SKIPPED, target="ch10:tmem", reason="needs tensor memory; this is 9.0", sides={}),
]


@pytest.fixture(scope="module")
def text():
    return html(a_run(exit_code=4, ended="2026-01-02T03:05:00"), ROWS)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


# --- complete in itself


def assert_needs_nothing_else(text):
    page = Page(text)
    for tag, attributes, _ in page.elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "img", "image", "use", "form")
        for name, value in attributes.items():
            assert name not in ("src", "srcset", "action", "data", "xlink:href", "style"), f"{name} in {tag}"
            assert not name.startswith("on"), f"{name} in {tag}"
            if name == "href":
                assert value.startswith("#"), value
    for _, style in page.all("style"):
        assert "url(" not in style
        assert "@import" not in style
    for _, script in page.all("script"):
        for word in ("fetch", "XMLHttpRequest", "import(", "WebSocket", "http", "innerHTML", "eval"):
            assert word not in script


def test_it_asks_for_nothing_when_it_is_read(text):
    assert_needs_nothing_else(text)


def test_its_policy_forbids_all_but_its_own_style_and_script(page):
    (script,) = ["".join(text) for tag, _, text in page.elements if tag == "script"]
    (policy,) = [found["content"] for found, _ in page.all("meta") if found.get("http-equiv") == "Content-Security-Policy"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()

    assert policy.startswith("default-src 'none';")
    assert f"script-src 'sha256-{digest}';" in policy


def test_it_is_the_same_every_time(text):
    assert html(a_run(exit_code=4, ended="2026-01-02T03:05:00"), ROWS) == text


def test_it_is_made_for_a_phone_for_the_dark_and_for_paper(page):
    (style,) = page.texts("style")

    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in [found for found, _ in page.all("meta")]
    for condition in ("(max-width: 640px)", "(prefers-color-scheme: dark)", "@media print"):
        assert condition in style


def test_without_a_script_nothing_is_missing_and_nothing_is_dead(page):
    assert all("hidden" in found for found, _ in page.all("p", class_="controls"))
    assert page.all("button") == []
    hidden = [tag for tag, found, _ in page.elements if "hidden" in found]
    assert hidden == ["p"]


def test_every_link_leads_somewhere_and_no_place_is_named_twice(page):
    names = [found["id"] for _, found, _ in page.elements if "id" in found]

    assert len(set(names)) == len(names)
    assert {found["href"][1:] for found, _ in page.all("a")} <= set(names)


def test_every_drawing_says_in_words_what_it_shows(page):
    words = {
        found["id"]: " ".join("".join(text).split()) for tag, found, text in page.elements if tag in ("title", "desc") and "id" in found
    }
    drawings = [found for found, _ in page.all("svg", role="img")]

    assert drawings
    for found in drawings:
        assert all(words[name] for name in found["aria-labelledby"].split())
    assert "ch07:transpose: 2.31x [2.28, 2.34], faster" in words.values()


def test_ten_pairs_of_as_many_samples_as_a_precise_one_takes_are_less_than_300_kilobytes():
    samples = {"baseline": [84_700.0 * (1 + (i * 37 % 101) / 5000) for i in range(64)], "optimized": [36_700.0 + i for i in range(64)]}
    blocks = {side: (Block(seed=1, samples_ns=tuple(found)),) * 2 for side, found in samples.items()}
    timing = a_timing(units=(Unit(order=("baseline", "optimized") * 2, blocks=blocks),) * 6)
    files = {side: a_side(side, file=f"ch07/{side}_transpose.cu") for side in samples}

    text = html(a_run(), [a_row(f"ch07:pair{number}", timings={"default": timing}, sides=files) for number in range(10)])

    assert sum(path.count("h0") for path in re.findall(r'class="dots[^>]*', text)) == 10 * (6 + 2 * 6 * 128)
    assert "__shared__" in text
    assert len(text.encode()) < 300_000


# --- what a file slips in stays text


def test_what_comes_from_a_file_is_text_wherever_it_stands(tmp_path):
    (tmp_path / "a.py").write_text(f'"""{NASTY}"""\n')
    (tmp_path / "b.py").write_text(f"# {NASTY}\n{NASTY}\n")
    sides = {"baseline": a_side("baseline", file="a.py", directives={"expects": NASTY}), NASTY: a_side(file="b.py")}
    timing = a_timing({"baseline": 2e5, NASTY: 1e5}, shape={NASTY: NASTY}, notes=(NASTY,), stop_reason="precise")
    rows = [
        a_row(
            NASTY,
            idea=NASTY,
            workload_file=NASTY,
            sides=sides,
            timings={NASTY: with_shares(timing)},
            notes=(NASTY,),
            proofs=(a_proof(claim=NASTY),),
            verdicts={NASTY: a_verdict("SAME", NASTY, changes={NASTY: a_change()})},
        ),
        a_failure(target=f"ch07:{NASTY}", reason=NASTY, sides={NASTY: a_side(file=NASTY)}),
    ]
    environment = {"cpu": NASTY, "cores": 2, "notes": [NASTY], "root": {"commit": NASTY, "dirty": True}, NASTY: {NASTY: NASTY}}
    run = a_run(Settings(root=tmp_path), run_id=NASTY, environment=environment, started=NASTY)

    text = html(run, rows)
    page = Page(text)

    assert_needs_nothing_else(text)
    assert len(page.all("script")) == len(page.all("style")) == 1
    assert "49" not in page.texts("h1")[0]
    assert page.texts("h1")[0].endswith(" ".join(f": benchmark {NASTY}".split()))
    assert [found for tag, found, _ in page.elements if "onerror" in found] == []
    assert NASTY.split(maxsplit=1)[0] + " src=x" in text.replace("&lt;", "<")  # it is there, as text


def test_targets_that_spell_alike_have_places_of_their_own():
    page = Page(html(a_run(), [a_row("a:b"), a_row("a/b"), a_row("a b"), a_row("a-b-2")]))

    assert [found["id"] for found, _ in page.all("article")] == ["a-b", "a-b-2", "a-b-3", "a-b-2-2"]


# --- the whole run


def test_the_first_chart_has_every_row_in_order_and_says_why_there_is_no_speedup(page):
    rows = [text for found, text in page.all("div", class_="row") if "axis" not in found["class"]]

    assert rows == [
        "ch07:transpose REGRESSED ch07:transpose: 2.31x [2.28, 2.34], faster 2.31x [2.28, 2.34]",
        "ch08:ladder @small",
        "smem smem: 2.00x [1.97, 2.03], faster 2.00x [1.97, 2.03]",
        "library library: 4.00x [3.97, 4.03], faster 4.00x [3.97, 4.03]",
        "ch08:ladder @large",
        "smem smem: 2.00x [1.97, 2.03], faster 2.00x [1.97, 2.03]",
        "library library: 4.00x [3.97, 4.03], faster 4.00x [3.97, 4.03]",
        "ch07:copy_optimized one side alone, no speedup: 36.7 µs [36.3, 37.1] PASSED",
        "ch14:checked checked, and by its workload not timed on a CPU PASSED",
        "ch07:broken y[3] is 1; expected 2 WRONG_RESULT",
        "ch10:tmem needs tensor memory; this is 9.0 SKIPPED",
    ]


@pytest.mark.parametrize("rows", [[a_row(timings={}), a_failure()], [a_row(timings={"cpu": a_timing({"baseline": 5.25e6})})]])
def test_a_run_without_a_speedup_has_no_chart_of_them(rows):
    page = Page(html(a_run(), rows))
    assert "Speedup over the baseline" not in page.texts("h2")
    assert page.all("div", class_="row") == []
    assert {found["href"] for found, text in page.all("a") if text == "all"} == {"#results"}
    assert [found for found, _ in page.all("section") if found.get("id") == "results"]


def test_what_failed_has_a_link_to_what_its_processes_printed(tmp_path):
    run = a_run(folders={"ch07:broken": "ch07_bro ken", "ch07:transpose": "ch07_transpose"})
    for path in ("ch07_bro ken/optimized", "ch07_transpose/optimized"):
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "log.txt").touch()
    links = [(found["href"], text) for found, text in Page(html(run, [a_row(), a_failure()], tmp_path)).all("a") if "log" in found["href"]]
    assert links == [("ch07_bro%20ken/optimized/log.txt", "optimized")]


def test_the_first_chart_has_the_steps_of_a_ladder_in_their_order():
    times = {"baseline": 8e5, "walk": 4e5, "clustered": 2e5, "optimized": 1e5, "library": 9e4}
    page = Page(html(a_run(), [a_row(timings={"default": a_recorded_timing(units=recorded_ladder(times))})]))
    rows = [text for found, text in page.all("div", class_="row") if "axis" not in found["class"]]
    assert [text.split(maxsplit=1)[0] for text in rows] == ["ch07:transpose", "walk", "clustered", "library"]


def test_a_speedup_that_is_not_decided_looks_undecided():
    unsure = a_timing(speedups={"optimized": an_interval(1.01, 0.03)})
    slower = a_timing(speedups={"optimized": an_interval(0.9, 0.03)})
    page = Page(html(a_run(), [a_row(timings={"default": unsure}), a_row("ch07:slow", timings={"default": slower})]))
    drawn = [found["class"] for found, _ in page.all("svg", role="img") if "plot" not in found["class"]]

    assert drawn == ["undecided", "slower"]
    assert "not decided, the 95 % interval holds 1x" in page.texts("article")[0]
    assert "slower, all of the 95 % interval lies below 1x" in page.texts("article")[1]


def test_the_table_of_results_has_a_body_a_target_so_that_sorting_keeps_it_together(page):
    bodies = [text for found, text in page.all("tbody") if "data-search" in found]

    assert len(bodies) == len(ROWS)
    assert bodies[0] == "ch07:transpose 84.7 µs 36.7 µs 2.31x [2.28, 2.34] 50 % → 50 % PASSED REGRESSED 1 of 2"
    assert "└ library" in bodies[1]
    assert "└ smem" in bodies[1]


def test_columns_that_say_nothing_in_this_run_are_left_out():
    heads = Page(html(a_run(), [a_row()])).texts("thead")[0]

    assert heads == "target baseline optimized speedup [95 %] status"


def test_what_a_filter_looks_for_is_in_every_piece_of_a_target(page):
    found = [attributes["data-search"] for _, attributes, _ in page.elements if "data-search" in attributes]

    assert found.count("ch07:transpose passed regressed") == 4  # chart, roofline, table, article
    assert found.count("ch10:tmem skipped") == 3


def test_the_roofline_has_the_sides_whose_ceiling_was_measured(page):
    (section,) = [text for found, text in page.all("section") if found.get("id") == "roofline"]

    assert "ch07:transpose baseline 50.0 % [49.5, 50.5] of dram, optimized 50.0 % [49.5, 50.5] of dram; at the ceiling 42.4 µs" in section
    assert "ch08:ladder @large" in section
    assert "ch08:ladder @small" not in section
    assert len(page.all("circle", class_="reach")) == 2 + 3


def test_what_is_optimized_is_drawn_over_the_others():
    shares = {side: Share(key="dram", share=0.5, ceiling_ns=1e6, floor_ns=1e6, at_held_clock=None) for side in ("optimized", "library")}
    timing = a_timing({"optimized": 1e6, "library": 2e6}, shares=shares)
    page = Page(html(a_run(), [a_row(timings={"default": timing})]))
    kinds = [found["class"] for found, _ in page.all("g")]
    assert kinds[-1] == "optimized"
    assert kinds == sorted(kinds, key=lambda kind: kind == "optimized")


def test_on_a_phone_a_branch_s_time_is_not_called_that_of_the_optimized_side(text):
    (table,) = re.findall(r'<table class="results">.*?</table>', text, re.DOTALL)
    branches = [line for line in table.splitlines() if "└" in line]
    assert branches
    assert all('data-label="time"' in line and 'data-label="optimized"' not in line for line in branches)
    assert 'data-label="optimized"' in table


def test_without_ceilings_there_is_no_roofline():
    assert "roofline" not in [found.get("id") for found, _ in Page(html(a_run(), [a_row()])).all("section")]


def test_the_ceilings_of_a_run_are_shown_with_their_intervals():
    ceiling = {
        "name": "dram_copy", "value": {"estimate": 4.3e12, "low": 4.2e12, "high": 4.4e12}, "unit": "bytes/s", "mode": "burst",
        "l2": "clean", "samples": 12, "sm_clock_hz": None, "how": "256 threads",
    }  # fmt: skip
    kept = {
        "machine": "GPU-1", "name": "NVIDIA H200", "device": "cuda", "driver": "580", "torch": "2.13.0", "measured": "2026-01-01",
        "seconds": 40.0, "sm_clock_max_mhz": 1980, "memory_clock_max_mhz": 3201, "power_limit_w": 700.0, "cache_bytes": 1 << 26,
        "ceilings": [ceiling], "missing": {},
    }  # fmt: skip
    page = Page(html(a_run(ceilings={"cuda": kept}), []))

    assert "Ceilings of NVIDIA H200, measured 2026-01-01" in page.texts("summary")
    assert "dram_copy 4.30 TB/s [4.20 TB/s, 4.40 TB/s] burst clean 256 threads" in page.texts("tr")

    with pytest.raises(BenchmarkError, match=r"run\.json of 20260102_030405: ceilings of cuda: .*; expected what `peak` keeps"):
        html(a_run(ceilings={"cuda": kept | {"device": "tpu"}}), [])


def test_what_lowers_certainty_stands_on_top():
    run = a_run(interrupted=True, environment={"notes": ["no NVML, so no GPU is used"]})

    assert Page(html(run, [])).texts("p", class_="warning") == ["no NVML, so no GPU is used", "interrupted: further targets were not run"]
    assert "was killed" in Page(html(a_run(), [])).texts("p", class_="warning")[0]
    assert Page(html(a_run(exit_code=0), [])).texts("p", class_="warning") == []


def test_a_report_of_nothing_is_still_a_report():
    page = Page(html(a_run(), []))

    assert page.texts("p", class_="summary") == ["no target was run."]
    assert page.all("article") == []


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.PASSED])
def test_no_time_is_shown_for_a_row_that_did_not_pass(status, tmp_path):
    a_time = re.compile(r"\d (ns|µs|ms|s)\b|\dx\b")

    without_sources = a_run(Settings(root=tmp_path))
    (article,) = Page(html(without_sources, [a_failure(status, seconds=7.25)])).texts("article")
    assert not a_time.search(article)
    assert a_time.search(Page(html(without_sources, [a_row()])).texts("article")[0])


def test_an_interval_wider_than_the_plot_is_kept_inside_it():
    wide = Interval(estimate=1.0, low=1e-9, high=1e9)
    page = Page(html(a_run(), [a_row(timings={"default": a_timing(speedups={"optimized": wide})})]))
    places = [float(found[key].rstrip("%")) for found, _ in page.all("line", class_="whisker") for key in ("x1", "x2")]

    assert all(0 <= place <= 100 for place in places)
