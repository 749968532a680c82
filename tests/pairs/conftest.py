"""One fork server for all checks of pairs in a process."""

import pytest

from tests.pairs.harness import Harness


@pytest.fixture(scope="session")
def harness():
    with Harness() as started:
        yield started
