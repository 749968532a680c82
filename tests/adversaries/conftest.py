"""The option by which a run of the adversaries on a GPU keeps what became of them, for the README's table."""

from pathlib import Path

import pytest

from common.python.storage import document_text, write_whole
from tools.checks.adversaries import results_of

OPTION = "--adversary-results"


def pytest_addoption(parser):
    parser.addoption(OPTION, metavar="FILE", help="keep what became of the adversaries on this GPU: tests/adversaries/results_h200.json")


def pytest_configure(config):
    path = results_path(config)
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise pytest.UsageError(f"{OPTION} {path}: found {'a folder' if path.is_dir() else 'no folder for it'}; expected a file to write")


def results_path(config):
    """Where to keep them, None if nobody asks."""
    name = config.getoption(OPTION, None)  # of a run that names a folder above this one there is no such option
    return Path(config.invocation_params.dir, name) if name else None


@pytest.fixture(scope="session")
def keep_results(pytestconfig):
    """Keeps the results of the run whose documents lie in a folder, where the option asks for it."""

    def keep(run_folder):
        path = results_path(pytestconfig)
        if path is not None:
            write_whole(path, document_text(results_of(run_folder)))

    return keep
