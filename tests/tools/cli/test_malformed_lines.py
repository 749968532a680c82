"""Command lines, files and surroundings that make no sense: one sentence with the flag or the file, and exit 1; never a traceback."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from common.python.report.run_folder import RunFolder
from common.python.run import peak
from common.python.settings import Settings
from common.python.storage import write_whole
from tests.support.commands import ROOT, ROOT_FIRST, benchmark_here, write_pair
from tests.support.factories import a_row, a_run

LONG = "n" * 300
DIGITS = "9" * 5000


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Run the command line in this process; `{}` in a line is the folder of the test, in which the user stands."""
    write_pair(tmp_path / "root")
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    a_saved_run(tmp_path / "run")
    monkeypatch.chdir(tmp_path)

    def run(line):
        return benchmark_here(*(word.replace("{}", str(tmp_path)) for word in shlex.split(line)), scratch=tmp_path)

    return run


def a_saved_run(folder):
    """A run's folder as the run leaves it."""
    made = RunFolder(folder, a_run().run_id)
    made.write_pair(a_row())
    made.write_run(a_run(Settings(root=ROOT), exit_code=0))
    return folder


def refusal(finished):
    """The sentence of a line that was refused."""
    assert finished.code == 1, finished
    assert "Traceback" not in finished.stderr
    return finished.error


LINES = {
    # --- folders that are none
    f"run --root {LONG}": "--root .*n: found no such folder; expected one that holds pairs",
    f"verify --root {LONG * 20}": "--root .*n: found no such folder; expected one that holds pairs",
    "run --root {}/loop": "--root {}/loop: found no such folder; expected one that holds pairs",
    "run --root {}/file": "--root {}/file: found no such folder; expected one that holds pairs",
    "list-targets --root {}/loop": "--root {}/loop: found no such folder; expected one that holds pairs",
    f"list-targets --root {LONG}": "--root .*n: found no such folder; expected one that holds pairs",
    f"list-techniques --root {LONG}": "--root .*n: found no such folder; expected one that holds pairs",
    "show demo:double --root {}/loop": "--root {}/loop: found no such folder; expected one that holds pairs",
    "new demo:sum --root {}/loop": "--root {}/loop: found no such folder; expected one that holds pairs",
    "history --runs {}/run --root {}/nowhere": "--root {}/nowhere: found no such folder; expected one that holds pairs",
    "verify --root {}/root --artifacts-dir {}/loop": "{}/loop is not a folder; expected a folder, or nothing there yet",
    "verify --root {}/root --artifacts-dir {}/file": "{}/file is not a folder; expected a folder, or nothing there yet",
    "verify --root {}/root --artifacts-dir {}/run": "--artifacts-dir {}/run is not empty; expected an absent or empty folder, or --resume",
    f"verify --root {{}}/root --artifacts-dir {LONG}": f"{LONG}: File name too long; expected a folder that can be made",
    "verify --root {}/root --artifacts-dir /dev/null": "/dev/null is not a folder; expected a folder, or nothing there yet",
    "compare {}/run {}/run --artifacts-dir {}/loop": "{}/loop is not a folder; expected a folder, or nothing there yet",
    f"report {LONG}": f"{LONG}: no such folder; expected that of a run",
    "report {}/loop": "{}/loop: no such folder; expected that of a run",
    "report /dev/null": "/dev/null: no such folder; expected that of a run",
    "report ''": 'report "": found no folder; expected that of a run',
    "compare '' {}/run": 'compare "": found no folder; expected that of a run',
    "compare {}/run ''": 'compare "": found no folder; expected that of a run',
    f"compare {{}}/run {LONG}": f"{LONG}: no such folder; expected that of a run",
    "compare {}/file {}/run": "{}/file: no such folder; expected that of a run",
    "report {}/empty": "{}/empty/run.json is missing; expected the run.json of a run",
    "history --runs {}/nowhere": "{}/nowhere: found no run with a timed row; expected a folder of runs",
    f"history --runs {LONG}": f"--runs {LONG}: File name too long; expected a folder of runs",
    "history --runs {}/run --html /": "/: found no file; expected the name of one, or of nothing yet",
    "history --runs {}/run --html {}/empty": "{}/empty: found no file; expected the name of one, or of nothing yet",
    "history --runs {}/run --html /dev/null": "/dev/null: found no file; expected the name of one, or of nothing yet",
    f"history --runs {{}}/run --html {LONG}": f"{LONG}: File name too long; expected to write [0-9]+ characters there",
    "history --runs {}/run --html {}/file/page.html": "{}/file/page.html: (Not a directory|File exists); expected to write ",
    # --- targets that are none
    "run --root {}/root --targets ''": "target '': found nothing of that name; expected one like demo, demo:double",
    "run --root {}/root --targets demo:": "target 'demo:': found nothing of that name; expected one like demo:double",
    "show : --root {}/root": "target ':': found nothing of that name; expected one like demo:double",
    "show a:b:c --root {}/root": "target 'a:b:c': found nothing of that name; expected one like demo:double",
    f"show {LONG} --root {{}}/root": f"target '{LONG}': found nothing of that name; expected one that list-targets prints",
    "list-targets --root {}/root --chapter ''": '--chapter "": found no folder; expected the name of one',
    "list-targets --root {}/root --chapter ..": "target '..': found nothing of that name; expected one that list-targets prints",
    "history demo:none --runs {}/run": "target 'demo:none': found no time of it in {}/run; expected one of ch07:transpose",
    f"new demo:{LONG} --root {{}}/root": f"new demo:{LONG}: found a name too long for a file; expected a shorter one",
    f"new {LONG}:sum --root {{}}/root": f"new {LONG}:sum: found a name too long for a file; expected a shorter one",
    "new ../up:sum --root {}/root": "new ../up:sum: found '.' in the directory '../up'; expected letters, digits, _ and -",
    "new '' --root {}/root": "new : found no directory:name; expected for example ch07:row_sum",
    "new tests:sum --root {}/root": "new tests:sum: targets are not looked for in {}/root/tests",
    # --- numbers and words that no flag takes
    f"run --root {{}}/root --kwargs n={DIGITS}": "--kwargs n=9+: ",
    "run --root {}/root --kwargs n=1e400": "--kwargs n=1e400: ",
    "run --root {}/root --kwargs 'n=1 n=2'": "--kwargs: found 'n=2'; expected key=value pairs, each key once",
    f"run --root {{}}/root --sweep n=1,{DIGITS}": "--sweep n=9+: ",
    "run --root {}/root --sweep n=1,x": "--sweep n=x: ",
    "run --root {}/root --sweep ' '": "--sweep: found ' '; expected a shape entry and different values of it",
    f"run --iterations {DIGITS}": "--iterations 9+: '9+' is not an integer",
    "run --ranks 3 --root {}/root": "--ranks 3: workload_double.py cannot run in as many processes; expected 1",
    "run --profile ''": "--profile : '' is not one of 'none', 'minimal', 'roofline', 'deep_dive'",
    "run --against '' --root {}/root": "--against : found no such revision in {}/root; expected a commit, a branch or a tag",
    "verify --changed-since -x --root {}/root": "--changed-since -x: found no such revision in {}/root; expected a commit",
    f"prune --dry-run --root {LONG}": f"--root .*{LONG}: found no such folder; expected one that holds pairs",
    "prune --dry-run --root {}/loop": "--root {}/loop: found no such folder; expected one that holds pairs",
    "prune --dry-run --root {}/nowhere": "--root {}/nowhere: found no such folder; expected one that holds pairs",
    "prune --dry-run --days -1": "--days -1: -1.0 is not in the range x>=0.0",
    "prune --keep ''": "--keep : '' is not an integer",
    "noise --trials 0": "--trials 0: 0 is not in the range x>=1",
    "noise --device tpu": "--device tpu: expected one of auto, cuda, cpu",
    "peak --device ''": "--device : expected one of auto, cuda, cpu",
    "peak --gate 1": "No such option: --gate; expected it behind .*compare or noise",
    "doctor now": "Got unexpected extra argument",
    "compare {}/run": "Missing parameter: run_b; expected what --help lists",
    "compare {}/run {}/run --gate inf": "--gate inf: found no finite number; expected one",
    # --- choices of which only one can be kept
    "run --root {}/root --accept --iterations 3": "--accept --iterations 3: found both; expected one",
    "run --root {}/root --profile none --ncu-metric-set roofline": "--ncu-metric-set roofline: found no --profile; expected both",
    "verify --resume": "--resume: found no --artifacts-dir; expected the folder of the run to resume",
}


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.replace(LONG, "LONG").replace(DIGITS, "DIGITS"))
def test_a_line_that_makes_no_sense_is_one_sentence(here, tmp_path, line):
    sentence = LINES[line].replace("{}", re.escape(str(tmp_path)))
    assert re.match(sentence, refusal(here(line)))


@pytest.mark.parametrize("path", ["/dev/null", "folder", "/"])
def test_a_document_takes_the_place_of_no_device_and_no_folder(tmp_path, monkeypatch, path):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception, match="found no file; expected the name of one, or of nothing yet"):
        write_whole(Path(path), "text")
    assert not Path(path).is_file()


# --- documents that are none

DOCUMENTS = {
    "empty": (b"", "line 1, column 1: Expecting value; expected a whole JSON document"),
    "cut": (b'{"schema_version": 1, "run_id"', "line 1, column 31: Expecting ':' delimiter; expected a whole JSON document"),
    "binary": (b"\x80\xff", "byte 0 is not UTF-8; expected a whole JSON document"),
    "deep lists": (b"[" * 200_000, "lists or objects nested too deep to read; expected a whole JSON document"),
    "deep objects": (b'{"a":' * 200_000, "lists or objects nested too deep to read; expected a whole JSON document"),
    "digits": (b'{"schema_version":' + DIGITS.encode() + b"}", "found an integer too long to read; expected a whole JSON document"),
    "null": (b"null", "no schema_version; expected a document of schema version 1 to 1"),
    "version true": (b'{"schema_version": true}', "no schema_version; expected a document of schema version 1 to 1"),
    "version -1": (b'{"schema_version": -1}', "no schema_version; expected a document of schema version 1 to 1"),
    "nothing else": (b'{"schema_version": 1}', "run_id: Field required; expected schema version 1 as this commit has it"),
}
READERS = {
    "report": "report {}/run",
    "compare": "compare {}/run {}/run",
    "resume": "run --root {}/root --artifacts-dir {}/run --resume",
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", ["run.json", "metrics.json"])
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_a_document_that_is_none_is_told_by_those_who_read_a_run(here, tmp_path, kind, name, reader):
    content, sentence = DOCUMENTS[kind]
    (tmp_path / "run" / name).write_bytes(content)
    assert refusal(here(READERS[reader])) == f"{tmp_path}/run/{name}: {sentence}"
    told = refusal(here("history --runs {}/run"))
    assert (
        told
        == f"{tmp_path}/run: found no run with a timed row ({tmp_path}/run/{name}: {sentence}); expected a folder of runs, as artifacts/ is"
    )


def timing(rows):
    return rows["rows"][0]["timings"]["default"]


def in_samples(rows, samples_ns):
    timing(rows)["units"][0]["blocks"]["baseline"] = [{**timing(rows)["units"][0]["blocks"]["baseline"][0], "samples_ns": samples_ns}]


RUNS = {
    "gpus of letters": (lambda run: run["environment"].update(gpus="H200"), "environment: gpus: Input should be a valid tuple"),
    "gpus of numbers": (lambda run: run["environment"].update(gpus=[1]), "environment: gpus.0: Input should be "),
    "a GPU without a name": (lambda run: run["environment"].update(gpus=[{}]), "environment: gpus.0.name: Field required"),
    "a checkout of letters": (lambda run: run["environment"].update(root="main"), "environment: root: Input should be "),
    "packages in a list": (
        lambda run: run["environment"].update(packages=["torch"]),
        "environment: packages: Input should be a valid dict",
    ),
    "no root": (lambda run: run["settings"].pop("root"), "settings: root None; a run is of a folder"),
    "a numbered root": (lambda run: run["settings"].update(root=5), "settings: root 5; a run is of a folder"),
    "a folder outside": (lambda run: run.update(folders={"ch07:x": "../../up"}), "folders: '../../up'; a target's folder is a name in"),
    "an unknown key": (lambda run: run.update(speed=1), "speed: Extra inputs are not permitted"),
}
ROWS = {
    "no samples": (lambda rows: in_samples(rows, []), "samples of baseline that no clock tells; a unit has some, in ns, positive and at "),
    "samples of zero": (lambda rows: in_samples(rows, [0.0]), "samples of baseline that no clock tells; "),
    "samples beyond all time": (lambda rows: in_samples(rows, [1e308] * 3), "samples of baseline that no clock tells; "),
    "a speedup of zero": (
        lambda rows: timing(rows)["speedups"].update(optimized={"estimate": 0, "low": 0, "high": 0}),
        "a speedup of zero or less; a ratio of two times is positive",
    ),
    "a zero byte in a name": (lambda rows: rows["rows"][0].update(workload_file="a\0b"), "String should match pattern"),
    "a row twice": (lambda rows: rows.update(rows=rows["rows"] * 2), r"targets \['ch07:transpose'\] appear twice"),
    "an unknown status": (lambda rows: rows["rows"][0].update(status="FINE"), "Input should be 'PASSED', "),
}
EDITS = {("run.json", name): edit for name, edit in RUNS.items()} | {("metrics.json", name): edit for name, edit in ROWS.items()}


@pytest.mark.parametrize(("name", "what"), EDITS, ids=str)
def test_a_document_that_says_what_cannot_be_is_told(here, tmp_path, name, what):
    edit, sentence = EDITS[name, what]
    path = tmp_path / "run" / name
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))
    for reader in READERS.values():
        assert re.search(f"^{path}: .*{sentence}.*; expected schema version 1 as this commit has it$", refusal(here(reader)))


def test_a_run_of_an_older_release_is_told_which_setting_it_lacks(here, tmp_path):
    path = tmp_path / "run/run.json"
    content = json.loads(path.read_text())
    del content["settings"]["accept_regressions"]
    path.write_text(json.dumps(content))
    told = refusal(here("run --root {}/root --artifacts-dir {}/run --resume"))
    assert told == f"{path}: found no setting accept_regressions; expected those of this release, to resume it"


@pytest.mark.parametrize("kind", [kind for kind in DOCUMENTS if kind != "nothing else"])
def test_expectations_that_are_none_are_told(here, tmp_path, kind):
    content, sentence = DOCUMENTS[kind]
    path = tmp_path / "root/demo/expectations_h200.json"
    path.write_bytes(content)
    assert refusal(here("show demo:double --root {}/root")) == f"{path}: {sentence}"


# --- defaults that are none

DEFAULTS = {
    "tool = 5": "found tool = 5; expected a table, ",
    "[[tool]]\nx = 1": "found tool = .*; expected a table, ",
    "[[tool.benchmark_cli]]\nx = 1": "found tool.benchmark_cli = .*; expected a table, ",
    "[tool": ".*; expected TOML, of which ",
    f"a = {'[' * 100_000}": ".*; expected TOML, of which ",
    f"a = {DIGITS}": ".*; expected TOML, of which ",
    "\x80": ".*; expected TOML, of which ",
    '[tool.benchmark_cli]\nroots = "x"': "found 'roots' in .tool.benchmark_cli.; expected root",
    "[tool.benchmark_cli]\nroot = 5": "found root = 5 in .tool.benchmark_cli.; expected a folder, in quotes",
    '[tool.benchmark_cli]\nroot = ""': "found root = '' in .tool.benchmark_cli.; expected a folder, in quotes",
    '[tool.benchmark_cli]\nroot = "a\\u0000b"': r"found root = 'a.x00b' in .tool.benchmark_cli.; expected a folder, in quotes",
    "[tool.benchmark_cli]\ntargets = 5": "found targets = 5 in .tool.benchmark_cli.; expected a text, in quotes or a list of texts",
    "[tool.benchmark_cli]\ntargets = [5]": "found 5 among targets in .tool.benchmark_cli.; expected a text, in quotes",
    '[tool.benchmark_cli]\ndevice = ["cpu"]': "found device = .'cpu'. in .tool.benchmark_cli.; expected a text, in quotes",
    "[tool.benchmark_cli]\ngate = [1]": "found gate = .1. in .tool.benchmark_cli.; expected a number",
    "[tool.benchmark_cli]\ngate = true": "found gate = True in .tool.benchmark_cli.; expected a number",
    "[tool.benchmark_cli]\ngate = nan": "found gate = nan in .tool.benchmark_cli.; expected a finite number",
    "[tool.benchmark_cli]\nsuite-timeout = 2020-01-01": "found suite-timeout = .* in .tool.benchmark_cli.; expected a number",
    '[tool.benchmark_cli]\nverbose = "maybe"': "found verbose = 'maybe' in .tool.benchmark_cli.; expected true or false",
    "[tool.benchmark_cli]\nrequire-expectations = 7": "found require-expectations = 7 in .tool.benchmark_cli.; expected true or false",
    "[tool.benchmark_cli]\ngate = -1": "gate in .tool.benchmark_cli.: -1.0 is not in the range x>=0.0",
    '[tool.benchmark_cli]\nfail-on = "all"': "fail-on in .tool.benchmark_cli.: 'all' is not one of 'inconclusive'",
}


@pytest.mark.parametrize("text", DEFAULTS, ids=lambda text: text.replace(DIGITS, "DIGITS")[:60])
def test_a_default_that_makes_no_sense_is_told_with_its_file(here, tmp_path, text):
    (tmp_path / "pyproject.toml").write_bytes(text.encode("latin-1"))
    assert re.match(f"{tmp_path}/pyproject.toml: {DEFAULTS[text]}", refusal(here("run --root {}/root --dry-run")))


def test_a_default_root_that_no_folder_can_have_is_told(here, tmp_path):
    (tmp_path / "pyproject.toml").write_text(f'[tool.benchmark_cli]\nroot = "{LONG}"')
    assert refusal(here("list-targets")) == f"--root {tmp_path}/{LONG}: found no such folder; expected one that holds pairs"


# --- surroundings that are odd


def test_a_folder_of_artifacts_that_is_a_file_is_told(here, tmp_path, monkeypatch):
    monkeypatch.setattr(peak, "MACHINES", tmp_path / "file/machines")
    assert refusal(here("peak --device cpu")) == f"{tmp_path}/file/machines: Not a directory; expected a folder that can be made"
    monkeypatch.setattr(peak, "MACHINES", tmp_path / "file")
    assert refusal(here("peak --device cpu")) == f"{tmp_path}/file is not a folder; expected a folder, or nothing there yet"


def command(line, folder, **variables):
    """A command line in a shell of its own, where `{}` is `folder`: it may close what it prints to, or stand in no folder."""
    program = f"{shlex.quote(sys.executable)} {ROOT}/tools/cli/benchmark_cli.py"
    script = line.replace("{}", str(folder)).replace("benchmark_cli", program)
    environment = {**os.environ, "PYTHONPATH": ROOT_FIRST, "TMPDIR": str(folder), **variables}
    return subprocess.run(["bash", "-c", script], cwd=folder, env=environment, capture_output=True, timeout=120)


SURROUNDINGS = {
    "benchmark_cli list-targets --root {}/root > /dev/full": (
        8,
        "error: standard output: No space left on device; expected to print there",
    ),
    "benchmark_cli compare --json {}/run {}/run > /dev/full": (
        8,
        "error: standard output: No space left on device; expected to print there",
    ),
    "benchmark_cli verify --root {}/root --artifacts-dir {}/made > /dev/full; code=$?; test -e {}/made/report.html && exit $code": (
        8,
        "error: standard output: No space left on device; expected to print there",
    ),
    "benchmark_cli list-targets --root {}/nowhere > /dev/full": (1, "error: --root .*: found no such folder; .*"),
    "benchmark_cli list-targets --root {}/root >&-": (0, ""),
    "benchmark_cli list-targets --root {}/root >&- 2>&-": (0, ""),
    "benchmark_cli compare {}/run {}/run 2>&-": (0, ""),
    "mkdir gone && cd gone && rmdir ../gone && benchmark_cli list-targets --root {}/root": (0, ""),
    "mkdir gone && cd gone && rmdir ../gone && benchmark_cli list-targets --root root": (1, "error: --root root: found no such folder; .*"),
    "benchmark_cli list-targets --root $'{}/\\xff'": (1, "error: argument .*udcff': found bytes that are not UTF-8; expected UTF-8"),
    "benchmark_cli verify --root {}/root --kwargs $'n=\\xff'": (1, "error: argument .*: found bytes that are not UTF-8; expected UTF-8"),
    "touch $'root/demo/optimized_\\xff.py'; benchmark_cli verify --root {}/root": (
        1,
        "error: 'demo'/.optimized_.*: found a name that is not UTF-8; expected UTF-8, as documents hold it",
    ),
    "PYTHONIOENCODING=ascii benchmark_cli show ch07:transpose": (0, ""),
    "_BENCHMARK_CLI_COMPLETE=complete_bash benchmark_cli": (1, "error: found COMP_WORDS='' and COMP_CWORD=''; expected .*"),
    "_BENCHMARK_CLI_COMPLETE=complete_bash COMP_WORDS=x COMP_CWORD=-3 benchmark_cli": (
        1,
        "error: found COMP_WORDS='x' and COMP_CWORD='-3'; expected .*",
    ),
}


@pytest.mark.parametrize("line", SURROUNDINGS)
def test_surroundings_that_are_odd_are_told_or_do_no_harm(here, tmp_path, line):
    code, sentence = SURROUNDINGS[line]
    finished = command(line, tmp_path)
    told = finished.stderr.decode()
    assert finished.returncode == code, told
    assert re.fullmatch(f"({sentence})\n?", told)
