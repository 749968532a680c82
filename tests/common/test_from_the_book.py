"""What the page for readers of the book names is here: files exist, commands parse, symbols import, targets are pairs."""

import pkgutil
import re
import subprocess
import sys
from functools import cache

import pytest

from common.python.errors import BenchmarkError
from common.python.pairs.discovery import discover
from common.python.pairs.targets import select
from common.python.report.run_folder import METRICS_FILE
from tests.support.commands import CHILD_ENVIRONMENT, ROOT
from tools.cli.benchmark_cli import parsed

PAGE = ROOT / "common/docs/from-the-book.md"
SPAN = re.compile(r"`([^`]+)`")
TARGET = re.compile(r"(?:ch\d+|labs/\w+):\w+")
TAKES_FLAGS = re.compile(r"\bparse_args\(|\boptions\(")
HELP = """
import gc, os, runpy, sys
import common.python.run.suite, common.serving, torch, triton  # once, for all of them
gc.freeze()
for script in sys.argv[1:]:
    print(f"\\n== {script}", flush=True)
    if not os.fork():
        os.chdir(os.path.dirname(script))  # where modules are looked for first
        sys.argv[:] = [os.path.abspath(os.path.basename(script)), "--help"]
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        finally:
            sys.stdout.flush()
            os._exit(0)  # without the seconds in which torch ends
    os.wait()
"""


def rows(text):
    """Both cells of every row of the page's tables, without heads."""
    found = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines() if line.startswith("| ")]
    return [row for row in found if row[0] != "in the book" and set(row[0]) != {"-"}]


@cache
def tree():
    return discover(ROOT)


@cache
def text_of(*patterns):
    return "\n".join(path.read_text() for pattern in patterns for path in sorted(ROOT.glob(pattern)))


def script_of(span):
    """The script that a command runs, "" where a span is none."""
    words = span.split()
    return next((word for word in words[1:] if word.endswith(".py")), "") if words[0] in ("python", "torchrun") else ""


def flags_in(span):
    return re.findall(r"--[a-z][a-z-]*", span.partition(".py")[2])


def has_help(span):
    script = script_of(span)
    return bool(script and flags_in(span)) and (ROOT / script).is_file() and bool(TAKES_FLAGS.search((ROOT / script).read_text()))


@cache
def helps(scripts):
    """What each script says of its flags; one process imports torch for all."""
    run = subprocess.run(
        [sys.executable, "-c", HELP, *scripts],
        cwd=ROOT, env={**CHILD_ENVIRONMENT, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    parts = re.split(r"^== (\S+)\n", run.stdout, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def complaint_of_command(span):
    try:
        name, flags = parsed(span.split()[1:])
        select(tree(), flags.get("targets") or ([flags["chapter"]] if flags.get("chapter") else ["ch01"]))
    except BenchmarkError as error:
        return str(error)
    return "" if name else "no command"


def complaint_of_script(span):
    script = script_of(span)
    if not (ROOT / script).is_file():
        return f"found no {script}"
    if not flags_in(span):
        return ""
    if not has_help(span):
        return f"{script} takes no flags"
    told = helps(
        tuple(sorted({script_of(each) for _, here in rows(PAGE.read_text()) for each in SPAN.findall(here) if has_help(each)} | {script}))
    )
    return next((f"{script} has no {flag}" for flag in flags_in(span) if not re.search(rf"{flag}\b", told[script])), "")


def complaint(span, beside=""):
    """What is wrong with a name of the right column, of which `beside` is the cell; "" where nothing is."""
    first = span.split()[0]
    if first == "benchmark_cli":
        return complaint_of_command(span)
    if script_of(span):
        return complaint_of_script(span)
    if first == "pytest":
        return "" if all((ROOT / word).exists() for word in span.split()[1:] if "/" in word) else "found no such tests"
    if TARGET.fullmatch(span):
        try:
            select(tree(), [span])
        except BenchmarkError as error:
            return str(error)
        return ""
    if re.fullmatch(r"common(\.\w+)+", span):
        try:
            pkgutil.resolve_name(span)
        except (ImportError, AttributeError) as error:
            return str(error)
        return ""
    if span.startswith("artifacts/<run>"):
        name = span.rpartition("/")[2]
        return "" if f'"{name}"' in text_of("common/python/report/run_folder.py") else f"a run leaves no {name}"
    if ("/" in first and not first.startswith("./")) or re.search(r"\.\w{2,5}$", span):
        return "" if (ROOT / span).exists() else f"found no {span}"
    files = [ROOT / word for each in SPAN.findall(beside) for word in each.split() if (ROOT / word).is_file()]
    known = text_of("common/python/**/*.py", "tools/cli/*.py", "ch*/workload_*.py", "setup.sh") + "".join(
        path.read_text() for path in files
    )
    word = span.removeprefix("./setup.sh ").split()[0]
    return "" if word in known else f"{word} is written nowhere in the code"


def complaints(text):
    found = []
    for book, here in rows(text):
        names = SPAN.findall(here)
        found += [f"{book}: `{name}`: {wrong}" for name in names if (wrong := complaint(name, here))]
        if not names and not here.startswith("not here: "):
            found.append(f"{book}: names nothing; expected `a name`, or not here: and why")
    return found


def test_each_name_of_the_page_is_here():
    text = PAGE.read_text()
    assert len(rows(text)) > 100
    assert complaints(text) == []


@pytest.mark.parametrize(
    "names",
    [
        "run_all_tests.sh", "benchmark_peak.py", "profile.sh", "make", "start.sh", "stop.sh", "extract.sh", "assert.sh",
        "extract_ncu_metrics", "extract_nsys_summary", "configure_tf32", "tma_supported", "WorkloadMetadata",
        "results/", "reports/", "requirements_latest.txt",
    ],
)  # fmt: skip
def test_what_a_reader_looks_for_stands_on_the_left(names):
    assert any(names in book for book, _ in rows(PAGE.read_text()))


@pytest.mark.parametrize(
    ("here", "wrong"),
    [
        ("`benchmark_cli run --target ch07`", "No such option"),
        ("`benchmark_cli run --targets ch07:nothing_like_it`", "found nothing of that name"),
        ("`python ch02/hardware_inf.py --json`", "found no ch02/hardware_inf.py"),
        ("`python ch02/hardware_info.py --jsonl`", "ch02/hardware_info.py has no --jsonl"),
        ("`python ch14/triton_examples.py --fast`", "ch14/triton_examples.py takes no flags"),
        ("`ch07:nothing_like_it`", "found nothing of that name"),
        ("`ch07/Makefile`", "found no ch07/Makefile"),
        ("`requirements.txt`", "found no requirements.txt"),
        ("`common.WorkloadMetadata`", "WorkloadMetadata"),
        ("`common.python.tf32`", "tf32"),
        ("`artifacts/<run>/results.parquet`", "a run leaves no results.parquet"),
        ("`pytest test/ -v`", "found no such tests"),
        ("`time_to_first_token`", "written nowhere"),
        ("`ch03/system_tuning.sh` with `--apply-all`", "written nowhere"),
        ("somewhere", "names nothing"),
        ("not here", "names nothing"),
    ],
)
def test_a_name_that_is_not_here_is_found(here, wrong):
    (found,) = complaints(f"| in the book | here |\n| --- | --- |\n| `x` | {here} |\n")
    assert wrong in found


@pytest.mark.parametrize(
    "here",
    [
        "`benchmark_cli run --targets ch07:transpose --profile`", "`python ch02/hardware_info.py --json`",
        "`ch9:warp_specialization_baseline`",
        "`ch07/RESULTS.md`", "`common.Workload`", "`common.python.profile.ncu`", f"`artifacts/<run>/{METRICS_FILE}`", "`ttft_ms`",
        "`ch03/system_tuning.sh` with `--apply`", "`./setup.sh --system`", "`pytest tests/ -v`", "not here: there is none",
    ],
)  # fmt: skip
def test_a_name_that_is_here_passes(here):
    assert complaints(f"| in the book | here |\n| --- | --- |\n| `x` | {here} |\n") == []
