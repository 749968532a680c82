"""Peer copies and NVLink samples out of nsys's tables, from a report, a folder or a pattern that the shell could not expand."""

import json
import sqlite3

import pytest

from tests.support.profiled import put_on_path
from tools.profiling.parse_nvlink_metrics import main

TABLES = """
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, bytes INTEGER, copyKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER);
CREATE TABLE TARGET_INFO_GPU_METRICS (metricId INTEGER, metricName TEXT);
CREATE TABLE GPU_METRICS (timestamp INTEGER, metricId INTEGER, value INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (0, 1000, 100000, 10), (500, 2000, 200000, 10), (0, 9000, 1, 1);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 5000);
INSERT INTO TARGET_INFO_GPU_METRICS VALUES (3, 'NVLink RX Responses User Data [Throughput %]'), (4, 'SM Active [Throughput %]');
INSERT INTO GPU_METRICS VALUES (1, 3, 20), (2, 3, 60), (1, 4, 99);
"""


@pytest.fixture
def report(tmp_path):
    """A report of a row, a folder below the run's, with its export beside it."""
    folder = tmp_path / "run" / "ch04_nvlink"
    folder.mkdir(parents=True)
    connection = sqlite3.connect(folder / "profile.sqlite")
    connection.executescript(TABLES)
    connection.close()
    path = folder / "profile.nsys-rep"
    path.write_text("")
    return path


@pytest.mark.parametrize("form", ["run/ch04_nvlink/profile.nsys-rep", "run", "run/*nsys-rep"])
def test_copies_and_samples_of_a_report(report, tmp_path, capsys, form):
    assert main([str(tmp_path / form)]) == 0
    ((name, found),) = json.loads(capsys.readouterr().out).items()
    assert name == str(report)
    assert (found["peer_copies"], found["peer_bytes"], found["peer_seconds"]) == (2, 300_000, 2e-6)
    assert found["peer_gb_per_second"] == pytest.approx(150)
    assert found["under_kernels"] == pytest.approx(0.5)
    assert found["nvlink"] == {"NVLink RX Responses User Data [Throughput %]": {"mean": 40, "maximum": 60}}


def altered(report, statements):
    connection = sqlite3.connect(report.with_suffix(".sqlite"))
    connection.executescript(statements)
    connection.close()


def test_a_report_without_peers_and_samples_of_other_things_has_neither(report, capsys):
    altered(report, "DELETE FROM CUPTI_ACTIVITY_KIND_MEMCPY; DELETE FROM TARGET_INFO_GPU_METRICS WHERE metricId = 3")
    assert main([str(report)]) == 0
    (found,) = json.loads(capsys.readouterr().out).values()
    assert (found["peer_copies"], found["peer_gb_per_second"], found["nvlink"]) == (0, 0.0, {})


@pytest.mark.parametrize("statement", ["DROP TABLE GPU_METRICS", "DROP TABLE GPU_METRICS; DROP TABLE TARGET_INFO_GPU_METRICS"])
def test_a_report_without_samples_says_how_to_record_them_and_still_tells_its_copies(report, capsys, statement):
    altered(report, statement)
    assert main([str(report)]) == 1
    printed = capsys.readouterr()
    (found,) = json.loads(printed.out).values()
    assert found["peer_copies"] == 2
    assert "nvlink" not in found
    assert printed.err == (
        f"error: {report}: found no row of a table GPU_METRICS; expected a report recorded with --gpu-metrics-devices: "
        "nsys profile --gpu-metrics-devices=all --sample=none --cpuctxsw=none --trace=cuda,nvtx --output=profile PROGRAM\n"
    )


def test_a_database_of_something_else_has_no_figures(report, capsys):
    report.with_suffix(".sqlite").unlink()
    altered(report, "CREATE TABLE orders (id INTEGER)")
    assert main([str(report)]) == 1
    assert "found nothing that nsys records; expected" in capsys.readouterr().err


def test_a_report_that_nobody_exported_is_exported_by_nsys(report, tmp_path, monkeypatch, capsys):
    report.with_suffix(".sqlite").unlink()
    put_on_path(monkeypatch, "nsys", folder=tmp_path / "tools")
    assert main([str(report)]) == 1  # what the stand-in exports has no samples
    (found,) = json.loads(capsys.readouterr().out).values()
    assert found["peer_copies"] == 0


def test_without_nsys_an_export_is_asked_for(report, tmp_path, monkeypatch, capsys):
    report.with_suffix(".sqlite").unlink()
    put_on_path(monkeypatch, folder=tmp_path / "tools")
    monkeypatch.setattr("common.python.machine.description._tool_folders", lambda: ())
    assert main([str(report)]) == 1
    assert "expected one beside it, or one from nsys, which is not installed" in capsys.readouterr().err


def test_a_path_with_no_report_is_one_sentence(tmp_path, capsys):
    assert main([str(tmp_path / "run" / "*nsys-rep")]) == 1
    assert capsys.readouterr().err.endswith("no such report; expected a .nsys-rep, or a run's folder with some in it\n")
