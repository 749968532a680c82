"""Every adversary that needs no GPU is offered as a candidate: the generator's own judge refuses the cheats and accepts the honest ones."""

import pytest

from tests.ch20.conftest import CHEATS
from tools.checks.adversaries import cells_of, cheats

pytestmark = pytest.mark.slow

# Without a sandbox it spoils later rows: tests/adversaries/table.md says why.
CAUGHT_HERE = {"sum_edits_opponent": "CRASHED"}
# The limits of the sandbox come before those of the harness.
BROKEN_LIMITS = {"sum_loops": "took more than 15 s", "sum_fills_memory": "held more than 4 GiB"}
ROWS = {row.name: row.status for row in cheats() if row.on != "gpu"} | CAUGHT_HERE
WORKLOADS = sorted((path.stem.removeprefix("workload_") for path in CHEATS.glob("workload_*.py")), key=len, reverse=True)


def marks_of(name):
    """A forged time is told from those around it, which other tests may make long."""
    return [pytest.mark.alone] if ROWS[name] == "IMPLAUSIBLE" else []


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", [pytest.param(name, marks=marks_of(name)) for name in ROWS])
def test_an_adversary_as_a_candidate(offered, name):
    source = (CHEATS / f"optimized_{name}.py").read_text()
    workload = next(each for each in WORKLOADS if name.startswith(f"{each}_"))
    found = offered(source, workload, seconds=15.0 if ROWS[name] == "TIMEOUT" else 300.0)
    if found.status == "ERROR":
        assert BROKEN_LIMITS[name] in found.reason
    else:
        assert found.status == ROWS[name], found.reason


def test_what_a_sandbox_catches_is_pending_elsewhere():
    assert set(CAUGHT_HERE) <= {cells[0] for cells in cells_of("Not caught yet")}
