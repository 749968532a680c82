"""An excerpt keeps every figure and no path of its machine; a picture is drawn by the Chromium that is there, or it is said why not."""

import stat
from pathlib import Path

import pytest

from common.python.errors import BenchmarkError
from common.python.report.run_folder import load
from common.python.settings import Settings
from tests.support.commands import ROOT
from tests.support.factories import a_row, a_run
from tools.pictures import excerpt, report_picture
from tools.pictures.report_picture import RUN, find_browser, main

DRAWS = """#!/bin/sh
for each; do case $each in --screenshot=*) printf '\\211PNG%s' "$(head -c {size} /dev/zero | tr '\\0' x)" > "${{each#*=}}";; esac; done
exit {code}
"""


@pytest.fixture
def browser(tmp_path, monkeypatch):
    """Makes a Chromium that draws so many bytes, or fails."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(size=10, code=0):
        path = folder / "chromium"
        path.write_text(DRAWS.format(size=size, code=code))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(report_picture, "find_browser", lambda: str(path))

    return make


def test_a_picture_is_drawn_of_the_committed_run(tmp_path, browser, capsys):
    browser()
    assert main([str(RUN), str(tmp_path / "report.png")]) == 0
    assert (tmp_path / "report.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_is_too_large_is_not_kept(tmp_path, browser, capsys):
    browser(size=300_000)
    assert main([str(RUN), str(tmp_path / "report.png")]) == 1
    assert "expected at most 200000" in capsys.readouterr().err
    assert not (tmp_path / "report.png").exists()


def test_a_browser_that_fails_is_told(tmp_path, browser, capsys):
    browser(code=3)
    assert main([str(RUN), str(tmp_path / "report.png")]) == 1
    assert "found exit code 3" in capsys.readouterr().err


def test_without_a_browser_the_sentence_says_which_would_do():
    with pytest.raises(BenchmarkError, match=r"found none of chromium, .*; expected one"):
        find_browser(lambda name: None)
    assert find_browser(lambda name: f"/bin/{name}" if name == "google-chrome" else None) == "/bin/google-chrome"


def test_an_excerpt_has_the_rows_named_and_their_figures_unchanged():
    place = Path("/srv/tree")
    run = a_run(Settings(root=place, artifacts_dir=place / "artifacts" / "r1"), folders={"a:x": "a_x", "a:y": "a_y"})
    rows = (a_row("a:x"), a_row("a:y", notes=(f"see {place}/a/x.cu",)))
    shorter, metrics = excerpt.excerpt(run, rows, ["a:y"])
    assert shorter.settings == run.settings | {"root": ".", "artifacts_dir": "artifacts/r1"}
    assert shorter.folders == {"a:y": "a_y"}
    assert metrics.rows == (rows[1].model_copy(update={"notes": ("see a/x.cu",)}),)
    with pytest.raises(BenchmarkError, match="a:z: found no such row in the run; expected one of a:x, a:y"):
        excerpt.excerpt(run, rows, ["a:z"])


def test_an_excerpt_is_a_run_that_can_be_loaded(tmp_path, capsys):
    assert excerpt.main([str(RUN), str(tmp_path / "out"), "ch12:cuda_graphs"]) == 0
    run, rows = load(tmp_path / "out")
    before = {row.target: row for row in load(RUN)[1]}
    assert rows == (before["ch12:cuda_graphs"],)
    assert run.seed == load(RUN)[0].seed


def test_the_committed_run_names_no_folder_of_its_machine():
    text = "".join((RUN / name).read_text() for name in ("run.json", "metrics.json"))
    assert '"root": "."' in text
    assert '"artifacts_dir": "artifacts/' in text
    assert len(text) < 400_000
    assert RUN.is_relative_to(ROOT)
