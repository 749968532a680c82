"""What every test of the harness has around it."""

import os

import pytest

VARIABLE = "TRITON_INTERPRET"


@pytest.fixture(autouse=True)
def what_a_child_sets_stays_in_the_test():
    """A test may run a child's code in its own process, which then asks Triton for its interpreter: later tests compile."""
    before = os.environ.get(VARIABLE)
    yield
    if before is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = before
