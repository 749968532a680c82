"""The front page's tables come from the tree and from what was accepted, and its words keep to their form."""

import json
import re
import shutil

import pytest
import yaml

from common.python.errors import BenchmarkError, ExitCode
from common.python.machine.needs import FEATURES, MACHINE
from common.python.pairs.claims import parse_claim
from common.python.pairs.directives import KEYS
from common.python.pairs.workload import Workload
from tests.support.commands import ROOT
from tools.checks import front_page
from tools.checks.front_page import CHAPTERS, NOT_WRITTEN, OUTPUT_WIDTH, Chapter, best_of, chapters_text, output_text, read_chapters
from tools.checks.readme_tables import EXAMPLE_RUN

DOCS = ROOT / "common" / "docs"
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "tools/noise/README.md", "tools/campaign/README.md")]
PAGES += [ROOT / "tests/adversaries/README.md", *sorted(DOCS.glob("*.md"))]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def test_all_twenty_chapters_and_the_labs_have_a_row():
    assert [chapter.folder for chapter in read_chapters()] == [*(f"ch{number:02}" for number in range(1, 21)), "labs"]


def test_a_row_that_lacks_a_cell_is_named(tmp_path):
    path = tmp_path / "chapters.tsv"
    path.write_text("# head\nch01\tBasics\ttimes\tGPU\nch02\tMemory\ttiers\n")
    with pytest.raises(BenchmarkError, match=r"chapters.tsv:3: found 3 cells; expected folder, title"):
        read_chapters(path)
    path.write_text("# head\nch01\tBasics\ttimes\tGPU\n")
    assert read_chapters(path) == [Chapter("ch01", "Basics", "times", "GPU")]


def a_tree(root, **shares):
    """A chapter with a pair for each of `shares`, and what was accepted of each: a real row, at another share and speedup."""
    folder = root / "ch07"
    folder.mkdir()
    real = json.loads((ROOT / "ch07" / "expectations_h200.json").read_text())
    pairs = {}
    for name, share in shares.items():
        for role in ("workload", "baseline", "optimized"):
            (folder / f"{role}_{name}.py").write_text('"""A file."""\n')
        row = json.loads(json.dumps(real["pairs"]["vectorized_copy"]))
        row["default"]["sides"]["optimized"]["share"]["share"] = share
        pairs[name] = row
    (folder / "expectations_h200.json").write_text(json.dumps(real | {"pairs": pairs}))
    return front_page.discover(root).pairs


def test_the_best_result_is_the_one_closest_to_the_ceiling(tmp_path):
    pairs = a_tree(tmp_path, slow=0.4, fast=0.93, middling=0.7)
    assert re.fullmatch(r"\[fast\]\(ch07/optimized_fast.py\) \d\.\d\dx, 93 %", best_of(list(pairs)).text(tmp_path))
    assert best_of([]) is None


def test_a_pair_that_is_at_the_ceiling_but_gained_nothing_is_the_best_only_where_none_gained(tmp_path):
    pairs = a_tree(tmp_path, parity=0.98, fast=0.7)
    path = tmp_path / "ch07" / "expectations_h200.json"
    accepted = json.loads(path.read_text())
    accepted["pairs"]["parity"]["default"]["speedup"] |= {"estimate": 1.002, "low": 1.001, "high": 1.003}
    path.write_text(json.dumps(accepted))
    assert best_of(list(pairs)).name == "fast"
    assert best_of([pair for pair in pairs if pair.name == "parity"]).name == "parity"


def test_a_row_with_another_goal_than_time_is_never_the_best(tmp_path):
    pairs = a_tree(tmp_path, latency=0.93, fast=0.7)
    path = tmp_path / "ch07" / "expectations_h200.json"
    accepted = json.loads(path.read_text())
    accepted["pairs"]["latency"]["default"]["goal"] = "urgent_latency_us"
    path.write_text(json.dumps(accepted))
    assert best_of(list(pairs)).name == "fast"


def test_a_row_without_a_ceiling_comes_behind_those_that_have_one_and_before_those_that_gained_nothing(tmp_path):
    pairs = a_tree(tmp_path, hosts=0.5, parity=0.98, fast=0.2)
    path = tmp_path / "ch07" / "expectations_h200.json"
    accepted = json.loads(path.read_text())
    accepted["pairs"]["hosts"]["default"]["sides"]["optimized"]["share"] = None
    accepted["pairs"]["parity"]["default"]["speedup"] |= {"estimate": 1.002, "low": 1.001, "high": 1.003}
    path.write_text(json.dumps(accepted))
    assert best_of(list(pairs)).name == "fast"
    best = best_of([pair for pair in pairs if pair.name != "fast"])
    assert re.fullmatch(r"\[hosts\]\(ch07/optimized_hosts.py\) \d\.\d\dx", best.text(tmp_path))


def test_results_of_two_gpu_models_name_theirs_and_those_of_one_do_not(tmp_path):
    a_tree(tmp_path, fast=0.93)
    shutil.copytree(tmp_path / "ch07", tmp_path / "ch08")
    chapters = [Chapter("ch07", "Memory", "tiles", "GPU"), Chapter("ch08", "Occupancy", "warps", "GPU")]
    text = chapters_text(tmp_path, chapters)
    assert "| best on H200: speedup, share of ceiling |" in text
    assert "93 % |" in text
    other = json.loads((tmp_path / "ch08" / "expectations_h200.json").read_text()) | {"gpu": "h100"}
    (tmp_path / "ch08" / "expectations_h200.json").unlink()
    (tmp_path / "ch08" / "expectations_h100.json").write_text(json.dumps(other))
    text = chapters_text(tmp_path, chapters)
    assert "| best: speedup, share of ceiling |" in text
    assert "93 % (H200) |" in text
    assert "93 % (H100) |" in text


def test_a_chapter_without_pairs_is_not_written_and_one_without_results_not_measured(tmp_path):
    a_tree(tmp_path, fast=0.93)
    chapters = [Chapter("ch07", "Memory", "tiles", "GPU"), Chapter("ch08", "Occupancy", "warps", "GPU")]
    written, missing = chapters_text(tmp_path, chapters).splitlines()[2:]
    assert written.startswith("| [7 Memory](ch07/README.md) | tiles | [fast]")
    assert missing == f"| 8 Occupancy | warps | {NOT_WRITTEN} | GPU |"
    (tmp_path / "ch07" / "expectations_h200.json").unlink()
    assert "| not measured yet | GPU |" in chapters_text(tmp_path, chapters)


def test_the_output_is_that_of_the_committed_run_and_fits_the_page():
    block, source = output_text(ROOT / EXAMPLE_RUN).rsplit("\n\n", 1)
    rows = json.loads((ROOT / EXAMPLE_RUN / "metrics.json").read_text())["rows"]
    assert all(f"\n{row['target']} " in block for row in rows)
    assert max(map(len, block.splitlines())) <= OUTPUT_WIDTH
    assert "speedup [95 %]" in block
    assert source.startswith("[A run of ch01, ch07, ch12](tools/pictures/run_h200), shortened: NVIDIA H200, 2026-11-24. A row took ")


def test_the_front_page_keeps_its_form():
    text = (ROOT / "README.md").read_text()
    assert text.splitlines()[1] == "<!-- form: 2 -->"
    assert len(text.splitlines()) <= 120
    assert len([word for word in re.sub(r"<!--.*?-->", "", text).split() if re.search(r"\w", word)]) <= 1000


def test_the_front_page_shows_a_picture_that_is_small():
    assert "(common/docs/report.png)" in (ROOT / "README.md").read_text()
    picture = (DOCS / "report.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) <= 200_000


def test_the_front_pages_python_runs(monkeypatch, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(ROOT)
    exec(compile(code, "README.md", "exec"), {})
    assert re.match(
        r"softmax is .* as fast as by hand: faster; .*rounds in one process on one thread of the CPU\)\n  note: ", capsys.readouterr().out
    )


def anchors(text):
    """The names that GitHub gives the headings of a page."""
    heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for place, anchor in LINK.findall(page.read_text()):
        there = (page.parent / place).resolve() if place else page
        assert there.exists(), f"{page.name}: {place}"
        assert not anchor or anchor in anchors(there.read_text()), f"{page.name}: {place}#{anchor}"


@pytest.mark.parametrize("name", [*KEYS, *Workload.__dataclass_fields__])
def test_writing_a_pair_names_every_directive_and_every_field(name):
    rows = [line.split(" | ")[0] for line in (DOCS / "writing-a-pair.md").read_text().splitlines() if line.startswith("| `")]
    assert any(f"`{name}`" in cells for cells in rows), f"{name}: found no row for it in writing-a-pair.md"


@pytest.mark.parametrize("name", [*FEATURES, *MACHINE])
def test_writing_a_pair_names_every_feature_that_may_be_needed(name):
    text = (DOCS / "writing-a-pair.md").read_text().split("What `needs` takes:")[1].split("\n\n")[1]
    assert re.search(rf"`{name}( N)?`", text)


def test_the_claims_of_the_proving_page_can_be_read():
    claims = re.findall(r"(?:`|// )(proves|has): ([^`\n]+)", (DOCS / "proving.md").read_text())
    assert len(claims) > 10
    assert all(parse_claim(text, separates=key == "proves").text == text for key, text in claims)
    with pytest.raises(Exception, match="expected a claim such as"):
        parse_claim("registers <= 32 in copy", separates=False)


@pytest.mark.parametrize("code", ExitCode)
def test_the_gates_page_says_what_every_exit_code_means(code):
    rows = [line.strip("| ").split(" | ") for line in (DOCS / "gating-in-ci.md").read_text().splitlines() if re.match(r"\| \d", line)]
    assert any(str(int(code)) in cells[0].split(", ") for cells in rows)


def test_every_word_of_the_glossary_is_explained_in_two_sentences():
    sections = (DOCS / "glossary.md").read_text().split("\n### ")[1:]
    for section in sections:
        word, text = section.split("\n## ")[0].split("\n", 1)
        assert len(re.findall(r"[.](?=\s|$)", text)) == 2, word
    words = [section.split("\n")[0] for section in sections]
    assert len(set(words)) == len(words)
    wanted = "Warp Sector L2 Bank Wavefront Request|In flight|Occupancy Spill K-step Epilogue|Tail wave|Tensor core|TMA Cluster mbarrier"
    assert {word for part in wanted.split("|") for word in ([part] if part in words else part.split())} <= set(words)


def test_the_workflow_is_yaml_and_runs_what_must_hold():
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    (job,) = workflow["jobs"].values()
    assert job["runs-on"].startswith("ubuntu-")
    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert {"push", "pull_request"} <= set(workflow[True])  # YAML 1.1 reads `on` as true


def test_the_chapters_titles_fit_their_table():
    assert CHAPTERS.is_file()
    for chapter in read_chapters():
        assert max(map(len, (chapter.name, chapter.learn, chapter.needs))) <= 60
