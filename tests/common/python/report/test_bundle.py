"""What is private is not in a bundle, however it is spelt; what is not stays as it was."""

import html
import json
import zipfile
from urllib.parse import quote

import pytest

from common.python.errors import BenchmarkError
from common.python.report.bundle import bundle_of, texts_of_run, without_variables
from common.python.report.run_folder import RunFolder, load
from common.python.results import Run
from common.python.settings import Settings
from tests.support.factories import a_row, a_run

HOME = "/srv/Zoë & co"
PATHS = {f"{HOME}/pairs": "PROJECT", HOME: "HOME"}
NAMES = {"node-7.lan": "HOST", "node-7": "HOST", "alice": "USER", "root": "USER", "cuda": "USER"}


@pytest.mark.parametrize("spell", [str, html.escape, quote, lambda path: json.dumps(path)[1:-1]], ids=["plain", "html", "link", "json"])
def test_a_path_is_replaced_however_it_is_spelt_and_wherever_it_stands(spell):
    text = f"-I{spell(HOME + '/pairs')}/include from {spell(HOME)}/other"
    assert bundle_of({"a": text}, PATHS, {}).texts == {"a": "-IPROJECT/include from HOME/other"}


def test_a_name_is_a_whole_word_and_no_word_of_the_documents():
    text = "node-7:31 /tmp/of-alice/x alice_env; malice on node-71 {'root': 'cuda'} in alice-7"
    found = bundle_of({"a": text}, {}, NAMES)
    assert found.texts["a"] == "HOST:31 /tmp/of-USER/x USER_env; malice on node-71 {'root': 'cuda'} in USER-7"
    assert found.replaced == {"HOST": 1, "USER": 3}


def test_what_holds_nothing_private_stays():
    found = bundle_of({"a": "83 us of /usr/bin/nvcc"}, PATHS, NAMES)
    assert (found.texts, found.replaced) == ({"a": "83 us of /usr/bin/nvcc"}, {})


def test_variables_are_left_out_and_how_many_gpus_they_leave_stays():
    machine = {"cpu": "A CPU", "variables": {"CUDA_HOME": "/x"}, "notes": ["CUDA_VISIBLE_DEVICES='3,4' leaves 2 of 8 GPUs", "another"]}
    assert without_variables(machine) == {
        "cpu": "A CPU",
        "variables": {},
        "notes": ["CUDA_VISIBLE_DEVICES leaves 2 of 8 GPUs", "another"],
    }


def test_a_run_is_bundled_without_variables_and_can_be_read_again(tmp_path):
    folder = RunFolder.create(Settings(artifacts_dir=tmp_path / "run"), "1")
    run = a_run(run_id=folder.run_id)
    run = run.model_copy(update={"environment": run.environment | {"variables": {"CUDA_SECRET_PLACE": "planted"}}})
    folder.write_run(run)
    folder.write_pair(a_row())
    folder.finish(run.model_copy(update={"exit_code": 0}))
    assert "planted" in (tmp_path / "run/run.json").read_text()
    assert "planted" in (tmp_path / "run/report.html").read_text(), "so a copy would not do"

    bundle = bundle_of(texts_of_run(tmp_path / "run"), {}, {})
    bundle.write(tmp_path / "sent.zip")
    with zipfile.ZipFile(tmp_path / "sent.zip") as archive:
        archive.extractall(tmp_path / "got")
        assert sorted(archive.namelist()) == [
            f"sent/{name}" for name in ("junit.xml", "metrics.json", "report.html", "report.md", "results.csv", "run.json")
        ]
    assert [path for path in (tmp_path / "got").rglob("*.*") if "planted" in path.read_text()] == []
    found, rows = load(tmp_path / "got/sent")
    assert isinstance(found, Run)
    assert [row.target for row in rows] == ["ch07:transpose"]
    assert any(line.endswith("bytes  run.json") for line in bundle.listing())


def test_a_bundle_that_cannot_be_written_names_its_file(tmp_path):
    (tmp_path / "sent.zip").mkdir()
    with pytest.raises(BenchmarkError, match=r"sent\.zip: found no file"):
        bundle_of({"a": ""}, {}, {}).write(tmp_path / "sent.zip")
