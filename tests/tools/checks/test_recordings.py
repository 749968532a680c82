"""A chapter's recordings become a table and a picture each, and a recording that is none is named."""

import json
import shutil

import pytest

from common.python.errors import BenchmarkError
from tests.support.chapters import modules_of
from tests.support.teeth import ROOT
from tools.checks.recordings import SCRIPTS, recordings

DRAWING = ("shared_loss_lines.py", "shared_code_bars.py", "shared_code_bins.py")
MADE = {
    "device": "NVIDIA Test",
    "python": "3.1",
    "origin": {"commit": "0123456789abc", "dirty": False, "driver": "1.2", "torch": "2.0", "date": "2026-01-02T00:00:00"},
}
LOSSES = MADE | {
    "settings": {"steps": 20, "sequences": 4, "length": 8, "seed": 0},
    "losses": {"bf16": [4.0] * 18 + [2.0, 1.0], "fp8_tiles": [4.0] * 18 + [2.0, 1.3]},
}


def counts(codes, used, scales):
    """Counts of a format: `codes` codes, of which those in `used` lie once, and scales once each."""
    return {
        "codes": [int(code in used) for code in range(codes)],
        "scales": [int(byte in scales) for byte in range(256)],
        "beyond": 0.01,
        "error": 0.1,
    }


CODES = MADE | {
    "settings": {"texts": 2, "length": 8},
    "counts": {
        "NVFP4": {"weights": counts(16, (0, 8, 7, 15), (56,))},
        "MXFP8": {"weights": counts(256, (0, 126, 127, 254), (126, 127))},
    },
}


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    for name in DRAWING:
        shutil.copy(ROOT / "ch19" / name, tmp_path)
    with modules_of(tmp_path, monkeypatch):
        yield tmp_path


def kept(chapter, script, document):
    (chapter / f"{script.removesuffix('.py')}_test.json").write_text(json.dumps(document))
    return recordings(chapter / script)


def test_losses_are_told_over_bf16_with_their_picture(chapter):
    text, pictures = kept(chapter, "loss_curves.py", LOSSES)
    assert text.startswith("Losses by step, 20 steps of 4 texts of 8 bytes, seed 0, by [loss_curves.py](loss_curves.py):\n\n![")
    assert "| linear layers | nats per byte, mean of the last 2 steps | over bf16 |" in text
    assert "| fp8_tiles | 1.6500 | +10.00 % |" in text
    assert text.endswith("Recorded on NVIDIA Test, driver 1.2, torch 2.0, Python 3.1, commit 0123456789, 2026-01-02.")
    assert pictures[chapter / "loss_curves_test.svg"].count("<polyline") == 4


def test_codes_that_are_no_numbers_do_not_count(chapter):
    text, pictures = kept(chapter, "calibration_histograms.py", CODES)
    assert "| NVFP4 | weights | 4 of 16 | 50.00 % | 1.00 % | 1 | 10.00 % |" in text  # both zeros are one value
    assert "| MXFP8 | weights | 3 of 254 | 25.00 % | 1.00 % | 2 | 10.00 % |" in text
    picture = pictures[chapter / "calibration_histograms_test.svg"]
    assert "<title>weights, -6: 25.000 %</title>" in picture
    assert "<title>weights, 2^-1: 50.000 %</title>" in picture  # of E8M0, byte 126


@pytest.mark.parametrize("script", SCRIPTS)
def test_without_a_recording_nothing_is_claimed(chapter, script):
    assert recordings(chapter / script) == ("Not measured yet.", {})


@pytest.mark.parametrize(("script", "document"), [("loss_curves.py", LOSSES), ("calibration_histograms.py", CODES)])
def test_what_is_no_recording_is_named(chapter, script, document):
    for wrong in ({}, [], {key: value for key, value in document.items() if key != "origin"}):
        with pytest.raises(BenchmarkError, match=rf"{script.removesuffix('.py')}_test.json: .+; expected what {script} writes"):
            kept(chapter, script, wrong)
