"""Options by which a run of the adversaries on a GPU keeps what became of them, for the README's table, and by which it runs the rest."""

from pathlib import Path

import pytest

from tools.checks import adversaries

OPTION = "--adversary-results"
MISSING = "--adversary-missing"


def pytest_addoption(parser):
    parser.addoption(OPTION, metavar="FILE", help="keep what became of the adversaries on this GPU: tests/adversaries/results_h200.json")
    parser.addoption(MISSING, action="store_true", help=f"on a GPU, run those that the file of {OPTION} lacks, or that changed since")


def pytest_configure(config):
    path = results_path(config)
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise pytest.UsageError(f"{OPTION} {path}: found {'a folder' if path.is_dir() else 'no folder for it'}; expected a file to write")
    if path is None and config.getoption(MISSING, None):
        raise pytest.UsageError(f"{MISSING}: found no file to read; expected {OPTION} too")


def pytest_collection_modifyitems(config, items):
    if not config.getoption(MISSING, None):
        return
    names = adversaries.unmeasured(results_path(config))
    own = [item for item in items if item.path.parent == Path(__file__).parent and item.get_closest_marker("gpu")]
    done = [item for item in own if item.callspec.params["row"].name not in names]
    config.hook.pytest_deselected(items=done)
    items[:] = [item for item in items if item not in done]


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
            adversaries.keep_results(path, run_folder)

    return keep
