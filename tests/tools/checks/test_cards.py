"""A card is written from what `peak` measured, and its page from the card."""

import pytest

from common.python.pairs.predictions import read_card
from common.python.storage import document_text
from tests.support.factories import a_run
from tests.support.synthetic_ceilings import RATES, synthetic_ceilings
from tools.checks.cards import SMS, main


@pytest.fixture
def folders(tmp_path):
    cards, docs = tmp_path / "cards", tmp_path / "docs"
    return {"cards": cards, "docs": docs}


@pytest.fixture
def kept(tmp_path):
    """What `peak` would keep of a GPU that does not exist, under a name that has a page."""
    path = tmp_path / "GPU-synthetic.json"
    path.write_text(document_text(synthetic_ceilings(name="NVIDIA H200")))
    return path


def test_the_committed_pages_are_up_to_date(capsys):
    assert main(["--check"]) == 0, capsys.readouterr().out


def test_a_card_and_its_page_come_from_what_peak_keeps(kept, folders):
    assert main([str(kept)], **folders) == 0
    card = read_card(folders["cards"] / "h200.json")
    assert (card.model, card.gpu, card.driver, card.measured) == ("h200", "NVIDIA H200", "1.0", "2026-01-02")
    assert card.values["dram_copy"] == RATES["dram_copy"]
    assert (card.values["sm_count"], card.constants["sm_count"].kind) == (SMS["h200"], "chip fact")
    page = (folders["docs"] / "h200.md").read_text()
    assert "| `dram_copy` | 3.2 | TB/s | a copy in DRAM" in page
    assert "driver 1.0, 2026-01-02" in page
    assert page.index("`dram_copy`") < page.index("## Chip facts") < page.index("`sm_count`")
    assert main(["--check"], **folders) == 0


def test_a_run_holds_the_ceilings_too(tmp_path, folders):
    path = tmp_path / "run.json"
    path.write_text(document_text(a_run(ceilings={"cuda": synthetic_ceilings(name="NVIDIA H200").model_dump(mode="json")})))
    assert main([str(path)], **folders) == 0
    assert read_card(folders["cards"] / "h200.json").values["dram_copy"] == RATES["dram_copy"]


def test_a_model_without_a_card_has_a_page_that_says_so(kept, folders):
    assert main([str(kept)], **folders) == 0
    page = (folders["docs"] / "h100.md").read_text()
    assert "Not measured yet." in page
    assert "|" not in page
    assert not (folders["cards"] / "h100.json").exists()


def test_a_page_that_differs_from_its_card_fails_and_is_left_alone(kept, folders, capsys):
    assert main([str(kept)], **folders) == 0
    stale = folders["docs"] / "h200.md"
    stale.write_text(stale.read_text().replace("3.2", "3.3"))
    before = stale.read_text()
    assert main(["--check"], **folders) == 1
    assert "h200.md differs from its card" in capsys.readouterr().out
    assert stale.read_text() == before


def test_a_card_of_no_page_fails(kept, folders, capsys):
    assert main([str(kept)], **folders) == 0
    (folders["cards"] / "b200.json").write_text("{}")
    assert main(["--check"], **folders) == 1
    assert "b200.json is the card of no page" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{", "Expecting property name"),
        ("[]", "validation error"),
        ('{"ceilings": {}}', "validation error"),
        (None, "found ceilings of a GPU th"),
    ],
)
def test_another_file_is_one_sentence(tmp_path, folders, capsys, text, found):
    path = tmp_path / "other.json"
    path.write_text(document_text(synthetic_ceilings()) if text is None else text)
    assert main([str(path)], **folders) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {path}: ")
    assert found in error
    assert "; expected " in error
    assert not folders["cards"].exists()
