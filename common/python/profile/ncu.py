"""What ncu counted: its tables read, and the counters of two sides set beside each other, those that moved most first."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.python.results import BASELINE, PairResult
from common.python.wording import bytes_text, significant, time_text

TIME = "gpu__time_duration.sum"
DRAM_BYTES = "dram__bytes.sum"
DRAM_PERCENT = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
SM_PERCENT = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
L1_PERCENT = "l1tex__throughput.avg.pct_of_peak_sustained_active"
L2_PERCENT = "lts__throughput.avg.pct_of_peak_sustained_elapsed"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
REGISTERS = "launch__registers_per_thread"
L2_HITS = "lts__t_sector_hit_rate.pct"
TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"
# What a table of kernels shows first, by column.
HEADLINES = {
    "time": TIME,
    "DRAM traffic": DRAM_BYTES,
    "DRAM": DRAM_PERCENT,
    "L2": L2_PERCENT,
    "L1": L1_PERCENT,
    "SM": SM_PERCENT,
    "occupancy": OCCUPANCY,
    "L2 hits": L2_HITS,
    "tensor pipe": TENSOR,
}
STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")

# Of the hundreds that a full set holds, those that say why one side is faster than another; the CSV beside the result has them all.
_TELLING = re.compile(
    rf"{STALL.pattern}|{re.escape(L1_PERCENT)}|{re.escape(L2_PERCENT)}"
    rf"|{re.escape(SM_PERCENT)}|{re.escape(OCCUPANCY)}|{re.escape(L2_HITS)}|{re.escape(TENSOR)}"
    r"|gpu__time_duration\.sum|(gpu__dram_throughput|dram__throughput)\.avg\.pct_of_peak_sustained_elapsed"
    r"|dram__bytes(_read|_write|_op_read|_op_write)?\.sum|lts__t_(bytes|sectors)\.sum|l1tex__t_sector_hit_rate\.pct"
    r"|l1tex__(t_sectors|t_requests)_pipe_lsu_mem_global_op_(ld|st)\.sum"
    r"|l1tex__data_bank_conflicts_pipe_lsu(_mem_shared(_op_(ld|st))?)?\.sum|l1tex__data_pipe_lsu_wavefronts_mem_shared\.sum"
    r"|smsp__inst_executed\.sum|smsp__inst_issued\.sum|smsp__thread_inst_executed_per_inst_executed\.ratio"
    r"|launch__(registers_per_thread|grid_size|block_size|waves_per_multiprocessor|occupancy_limit_\w+|cluster_dim_\w+|"
    r"shared_mem_per_block\w*)|sm__maximum_warps_per_active_cycle_pct"
)

# With `--print-units base` nothing has to be scaled; a table that somebody else printed may need it. ncu's K is 1000.
_SCALES = {
    "s": 1e9,
    "second": 1e9,
    "ms": 1e6,
    "msecond": 1e6,
    "us": 1e3,
    "usecond": 1e3,
    "Kbyte": 1e3,
    "Mbyte": 1e6,
    "Gbyte": 1e9,
    "Tbyte": 1e12,
    "Khz": 1e3,
    "Mhz": 1e6,
    "Ghz": 1e9,
}


class UnreadableTable(Exception):
    """The text holds no table of ncu's; its own text says what was found instead."""


@dataclass(frozen=True)
class Profiled:
    """One launch that ncu profiled: the kernel, the text of the NVTX ranges around it, and its counters in ns, bytes and percent."""

    kernel: str
    ranges: str
    counters: Mapping[str, float]


def read_table(text: str, name: str) -> tuple[Profiled, ...]:
    """The launches of a table in their order. Raises UnreadableTable, which calls the text `name`."""
    lines = list(csv.reader(text.splitlines()))
    header = next((number for number, line in enumerate(lines) if line[:1] == ["ID"]), None)
    if header is None:
        raise UnreadableTable(f"{name}: no table of ncu's in it; expected what `ncu --csv --page raw` prints")
    columns = lines[header]
    rows = [line for line in lines[header + 1 :] if len(line) == len(columns)]  # ncu's own messages may stand between
    launches = [dict(zip(columns, row, strict=True)) for row in rows if row[0].isdigit()]
    if "Metric Name" in columns:
        return _one_row_a_counter(launches)
    units = next((dict(zip(columns, row, strict=True)) for row in rows if not row[0]), {})
    return tuple(_profiled(launch, {name: (launch[name], units.get(name, "")) for name in columns if "__" in name}) for launch in launches)


def _one_row_a_counter(rows: Iterable[Mapping[str, str]]) -> tuple[Profiled, ...]:
    first: dict[str, Mapping[str, str]] = {}
    values: dict[str, dict[str, tuple[str, str]]] = {}
    for row in rows:
        first.setdefault(row["ID"], row)
        values.setdefault(row["ID"], {})[row["Metric Name"]] = (row["Metric Value"], row["Metric Unit"])
    return tuple(_profiled(row, values[launch]) for launch, row in first.items())


def _profiled(row: Mapping[str, str], values: Mapping[str, tuple[str, str]]) -> Profiled:
    ranges = " ".join(text for column, text in row.items() if "_Range:" in column)
    numbers = {name: _number(*told) for name, told in values.items()}
    return Profiled(row["Kernel Name"], ranges, {name: number for name, number in numbers.items() if number is not None})


def _number(text: str, unit: str) -> float | None:
    """`1,205.00` us as 1205000 ns; None for n/a, which a GPU answers for what it does not count, and for words."""
    try:
        return float(text.replace(",", "")) * _SCALES.get(unit.partition("/")[0], 1.0)
    except ValueError:
        return None


def side_of(launch: Profiled, labels: Iterable[str]) -> str:
    """Whose range a launch was in, or nothing: `a/optimized` also begins the name of `a/optimized_other`, so the longest counts."""
    return max((label for label in labels if label in launch.ranges), key=len, default="")


def by_kernel(launches: Iterable[Profiled]) -> dict[str, list[Profiled]]:
    """The launches of each kernel."""
    found: dict[str, list[Profiled]] = {}
    for launch in launches:
        found.setdefault(launch.kernel, []).append(launch)
    return found


def together(launches: Sequence[Profiled]) -> dict[str, float]:
    """One value a counter over several launches: sums are summed, a launch's shape is the largest, the rest is averaged by time."""
    found = {}
    for name in dict.fromkeys(name for launch in launches for name in launch.counters):
        counted = [(launch.counters[name], launch.counters.get(TIME, 1.0)) for launch in launches if name in launch.counters]
        if name.endswith(".sum"):
            found[name] = sum(value for value, _ in counted)
        elif name.startswith("launch__") or name.endswith(".max"):
            found[name] = max(value for value, _ in counted)
        else:
            total = sum(weight for _, weight in counted)
            found[name] = sum(value * weight for value, weight in counted) / total if total else counted[0][0]
    return found


def telling(counters: Mapping[str, float], others: Iterable[str] = ()) -> dict[str, float]:
    """Those of `counters` that are kept in a result: what may explain a difference, and `others`."""
    wanted = frozenset(others)
    return {name: value for name, value in counters.items() if name in wanted or _TELLING.fullmatch(name)}


def read_file(path: Path) -> tuple[Profiled, ...]:
    """The launches of a table in a file. Raises UnreadableTable."""
    try:
        return read_table(path.read_text(encoding="utf-8"), path.name)
    except (OSError, UnicodeDecodeError) as error:
        found = error.strerror if isinstance(error, OSError) else error
        raise UnreadableTable(f"{path}: {found}; expected a CSV that ncu printed") from error


# What a zero is taken for, or conflicts in one of a thousand instructions, against none, would be the most that ever moved.
_LEAST_COUNT, _LEAST_SHARE, _LEAST_BYTES, _OF_INSTRUCTIONS = 1.0, 0.1, 1024.0, 0.01
_SAME = 1.05
_INSTRUCTIONS = "smsp__inst_executed.sum"


@dataclass(frozen=True)
class Moved:
    """A counter of one side against the baseline's."""

    side: str
    counter: str
    baseline: float
    value: float
    least: float = _LEAST_COUNT

    @property
    def ratio(self) -> float:
        """How many times the baseline's value it is; `least` stands for anything below it."""
        return max(self.value, self.least) / max(self.baseline, self.least)

    @property
    def words(self) -> str:
        """`dram__bytes.sum 256 MiB → 128 MiB (0.50x)`."""
        ratio = f" ({self.ratio_text})" if self.baseline else ""
        return f"{self.counter} {value_text(self.counter, self.baseline)} → {value_text(self.counter, self.value)}{ratio}"

    @property
    def ratio_text(self) -> str:
        """How many times the baseline's value it is, without a stand-in for either; empty where the baseline's is nothing."""
        if not self.baseline:
            return ""
        ratio = self.value / self.baseline
        return f"{ratio:.2f}x" if ratio >= 0.01 else f"{significant(ratio)}x"


def moved(row: PairResult) -> Iterator[Moved]:
    """The counters that differ between the baseline and each other side, those that moved most first, a side after the other."""
    profiles = {side: result.profile.counters for side, result in row.sides.items() if result.profile}
    for side, counters in profiles.items():
        if side != BASELINE and BASELINE in profiles:
            yield from ranked(side, profiles[BASELINE], counters)


def ranked(side: str, baseline: Mapping[str, float], counters: Mapping[str, float], same: float = _SAME) -> list[Moved]:
    """The counters of both that differ by a factor of more than `same`, those that moved most first.

    The time, which they are to explain, is left out.
    """
    instructions = min(values.get(_INSTRUCTIONS, 0.0) for values in (baseline, counters))
    both = [
        Moved(side, name, baseline[name], value, _least(name, instructions))
        for name, value in counters.items()
        if name in baseline and name != TIME
    ]
    different = [each for each in both if abs(math.log(each.ratio)) > math.log(same)]
    return sorted(different, key=lambda each: -abs(math.log(each.ratio)))


def _least(counter: str, instructions: float) -> float:
    """Below which a value of `counter` is as good as none, in a step of so many instructions of a warp."""
    if counter.startswith("launch__shared_mem"):
        return _LEAST_BYTES
    return max(_LEAST_COUNT, _OF_INSTRUCTIONS * instructions) if counter.endswith(".sum") else _LEAST_SHARE


def value_text(counter: str, value: float) -> str:
    """A counter's value with its unit, which its name tells."""
    if counter == TIME:
        return time_text(value)
    if "pct" in counter:
        return f"{significant(value)} %"
    if counter.endswith("bytes.sum") or "__bytes_" in counter:
        return bytes_text(value)
    return f"{value:,.0f}" if counter.endswith(".sum") or value.is_integer() else significant(value)


def stall_text(counters: Mapping[str, float]) -> str:
    """The most frequent stall reason and its cycles per instruction, as in `long_scoreboard 8.1`; "" if no stalls were counted."""
    stalls = {match[1]: value for name, value in counters.items() if (match := STALL.fullmatch(name))}
    reason = max(stalls, key=lambda name: stalls[name], default="")
    return f"{reason} {significant(stalls[reason])}" if reason else ""
