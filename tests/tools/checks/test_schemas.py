"""The published schemas are those of the models, and a difference is an exit code."""

import json

import jsonschema
import pytest

from tools.checks.schemas import PUBLISHED, SCHEMAS, main


def test_the_published_schemas_are_up_to_date(capsys):
    assert main(["--check"]) == 0, capsys.readouterr().out


def test_each_document_has_a_valid_schema_that_requires_its_version():
    assert {path.name for path in SCHEMAS.iterdir()} == {f"{name}.schema.json" for name in PUBLISHED}
    for path in SCHEMAS.iterdir():
        schema = json.loads(path.read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["properties"]["schema_version"]["const"] == 1
        assert set(schema["required"]) == set(schema["properties"])


@pytest.fixture
def published(tmp_path, capsys):
    assert main([], tmp_path) == 0
    assert main(["--check"], tmp_path) == 0
    capsys.readouterr()
    return tmp_path


def test_a_stale_schema_fails(published, capsys):
    (published / "run.schema.json").write_text("{}")

    assert main(["--check"], published) == 1
    assert "run.schema.json differs from its model" in capsys.readouterr().out
    assert (published / "run.schema.json").read_text() == "{}"


def test_a_missing_schema_and_one_of_no_document_fail(published, capsys):
    (published / "run.schema.json").rename(published / "race.schema.json")

    assert main(["--check"], published) == 1
    out = capsys.readouterr().out
    assert "run.schema.json is missing" in out
    assert "race.schema.json is the schema of no document" in out
