"""pytest's fixture `compare`, and `--gpu-expectations FILE`, which holds each comparison to what it found when it was stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from common.python.api.expected import Expected
    from common.python.api.result import Result

_FILE, _REQUIRE = "--gpu-expectations", "--require-gpu-expectations"
_GATE = "performance_pairs_gate"
_REPORTED = "gpu_expectations"  # what a test's report carries from a worker of pytest-xdist
_MOST_TOLD = 10
_KINDS = ("compared", "stored", "not stored", "regressed", "changed", "missing")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--gpu-expectations` and `--require-gpu-expectations`."""
    group = parser.getgroup("performance pairs")
    group.addoption(
        _FILE,
        metavar="FILE",
        help="speedups that `compare` is held to, by test and by GPU or CPU model; those that FILE lacks are stored in it",
    )
    group.addoption(
        _REQUIRE,
        action="store_true",
        help=f"store nothing: a comparison that the file of {_FILE} lacks fails, and so does a run without any",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read the file before any test is run."""
    chosen: str | None = config.getoption(_FILE)
    required: bool = config.getoption(_REQUIRE)
    if required and not chosen:
        raise pytest.UsageError(f"{_REQUIRE}: found no {_FILE}; expected {_FILE} FILE beside it")
    if chosen:
        from common.python.errors import BenchmarkError

        path = config.invocation_params.dir / chosen
        config.option.gpu_expectations = str(path)  # workers of pytest-xdist get it so, wherever they begin
        try:
            config.pluginmanager.register(_Gate(path, chosen, required=required), _GATE)
        except BenchmarkError as error:
            raise pytest.UsageError(str(error)) from None


@pytest.fixture(name="compare")
def compare_fixture(request: pytest.FixtureRequest) -> Callable[..., Result]:
    """`common.compare`; with --gpu-expectations, a speedup that has become lower than the stored one fails the test."""
    from common.python.api.compare import compare  # torch, which no other test needs to wait for

    gate: _Gate | None = request.config.pluginmanager.get_plugin(_GATE)
    count = 0

    def asked(*functions: Any, **choices: Any) -> Result:
        nonlocal count
        __tracebackhide__ = True
        count += 1
        result = compare(*functions, **choices)
        told = gate.hold(request.node, f"{request.node.nodeid} {count}", result) if gate and result.speedup else ""
        if told:
            pytest.fail(told, pytrace=False)
        return result

    return asked


class _Gate:
    """Holds comparisons to the file, and keeps what was found for the end of the session."""

    def __init__(self, path: Path, shown: str, *, required: bool) -> None:
        from common.python.api.expected import read_expected

        self.path = path
        self.shown = shown
        self.required = required
        self.known = read_expected(path, required=required)
        self.found: dict[str, list[dict[str, Any]]] = {}  # by test, as its report carries it
        self.kinds: Counter[str] = Counter()
        self.seen: set[str] = set()
        self.lines: list[str] = []
        self.new: dict[tuple[str, str], Expected] = {}
        self.wide: list[tuple[float, str]] = []
        self.unwritten = ""

    def hold(self, item: pytest.Item, key: str, result: Result) -> str:
        """What is wrong with a result beside what is expected of it, or nothing; a new one is stored if its test passes."""
        from common.python.api.expected import Expected, too_noisy

        assert result.speedup is not None, "only of two functions"
        now, place, band = Expected.of(result), f"{key} on {result.machine}", result.speedup.band_percent
        entry = self.known.entry(key, result.machine)
        if entry is None and self.required:
            kind, told = "missing", f"found nothing of {place} in {self.shown}; expected it there: a run without {_REQUIRE} stores it"
        elif entry is None:
            noise = too_noisy(now, band)
            kind, told = ("not stored", f"{noise}: {place}") if noise else ("new", "")
        elif change := entry.changed(now):
            kind, told = "changed", f"{change}, as {self.shown} has it of {place}; to accept the change, remove that entry"
        else:
            least = entry.speedup.low / (1 + band / 100)
            kind = "compared" if result.speedup.high >= least else "regressed"
            told = f"REGRESSED: {result!r}; expected {least:.3g}x or more, as {self.shown} has it of {place}" if kind == "regressed" else ""
            told = "\n".join([told, *(f"  note: {caveat}" for caveat in result.caveats)]) if told else ""
        self.found.setdefault(item.nodeid, []).append(
            {
                "kind": kind,
                "place": place,
                "key": key,
                "machine": result.machine,
                "entry": now.model_dump_json(),
                "visible": (entry or now).visible_percent(band),
            }
        )
        return told

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put what was found of a test into its report, which reaches the process that writes the file."""
        report = yield
        vars(report)[_REPORTED] = self.found.pop(item.nodeid, [])
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of what a test's report carries; of a test that failed nothing is stored."""
        from common.python.api.expected import WIDE_PERCENT, Expected

        for each in vars(report).get(_REPORTED, []):
            kind = str(each["kind"])
            if kind == "new":
                kind = "stored" if report.passed else "not stored"
            self.kinds.update({"compared", "regressed"} if kind == "regressed" else {kind})
            self.seen.add(each["key"])
            if kind == "stored":
                self.new[each["key"], each["machine"]] = Expected.model_validate_json(each["entry"])
                self.lines.append(f"stored: {each['place']}; a speedup that falls by less than {each['visible']:.0f} % will pass")
            elif kind == "not stored":
                self.lines.append(f"not stored: {each['place']}; {'its test failed' if each['kind'] == 'new' else 'too noisy'}")
            elif kind in ("compared", "regressed") and each["visible"] > WIDE_PERCENT:
                self.wide.append((each["visible"], each["place"]))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write what is new; and fail a run that had to compare something and did not."""
        from common.python.api.expected import store_expected
        from common.python.errors import BenchmarkError

        if hasattr(session.config, "workerinput"):  # a worker of pytest-xdist: who started it writes
            return
        if self.new:
            try:
                store_expected(self.path, self.new)
            except BenchmarkError as error:
                self.unwritten = str(error)
        nothing = self._lacks_all and not session.config.option.collectonly
        if session.exitstatus == pytest.ExitCode.OK and (nothing or self.unwritten):
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED if nothing else pytest.ExitCode.TESTS_FAILED

    @property
    def _lacks_all(self) -> bool:
        """Whether comparisons are required and none was made."""
        return self.required and not self.kinds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how many comparisons were held to the file, and how many are new in it."""
        counts = [f"{self.kinds[kind]} {kind}" for kind in _KINDS if self.kinds[kind] or kind in ("compared", "stored")]
        terminalreporter.write_line(f"expectations of {self.shown}: {', '.join(counts)}")
        lines = self.lines
        if self.wide:
            percent, place = max(self.wide)
            lines = [
                *lines,
                f"{len(self.wide)} held to wide intervals: of {place} a speedup that falls by less than {percent:.0f} % passes",
            ]
        if rest := len(self.known.comparisons.keys() - self.seen):
            lines = [*lines, f"{rest} of the {len(self.known.comparisons)} comparisons in {self.shown} were not made in this run"]
        if self._lacks_all:
            lines = [*lines, f"found no comparison; expected one at least, as {_REQUIRE} asks"]
        for line in [*lines[:_MOST_TOLD], *([f"and {len(lines) - _MOST_TOLD} more"] if len(lines) > _MOST_TOLD else []), self.unwritten]:
            if line:
                terminalreporter.write_line(f"  {line}")
