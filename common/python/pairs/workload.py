"""What must be computed, on what, how exactly, and how much work that is: stated once, for both sides."""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

from common.python.errors import BenchmarkError
from common.python.pairs.goals import GOALS, MEMORY, OF_A_GPU, TIME
from common.python.pairs.layout import place_of
from common.python.pairs.serving import FEWEST_FOR_TAIL, LATENCIES, LEAST_BEYOND, RATES, TAIL, Serving, is_latency, is_serving_goal

ShapeValue = int | float | bool | str
Shape = Mapping[str, ShapeValue]
DEFAULT_SHAPE = "default"
RANK_NAMES = ("rank", "ranks")  # what `inputs` may ask for beside the shape
PEER_NAMES = ("mesh", "shards")  # what functions of a workload with `ranks` may ask for too

Clock = Literal["device", "launch", "host"]
Cache = Literal["cold", "hot"]
Place = Literal["device", "host"]
Where = Literal["device", "pinned", "pageable"]
ReferenceIn = Literal["float64", "float32"]
State = Literal["refreshed", "evolves"]
Better = Literal["higher", "lower", "neither"]
_CHOICES = {
    "clock": get_args(Clock),
    "cache": get_args(Cache),
    "place": get_args(Place),
    "reference_in": get_args(ReferenceIn),
    "state": get_args(State),
}


def require_where(where: str) -> None:
    """Raises BenchmarkError unless `where` is a place of inputs and outputs."""
    if where not in get_args(Where):
        raise BenchmarkError(f"where={where!r}; expected {' or '.join(get_args(Where))}")


@dataclass(frozen=True)
class Precision:
    """A tolerance: |x - y| <= atol + rtol |y|, everywhere."""

    rtol: float
    atol: float


def _require_bounds(bounds: Mapping[str, float]) -> None:
    for name, bound in bounds.items():
        if not 0 <= bound < math.inf:
            raise BenchmarkError(f"{name}={bound}; expected a finite bound that is not negative")


@dataclass(frozen=True)
class Spec:
    """One output: its shape in elements, its torch dtype, and where it lies: on the device, or in pinned or pageable memory of the host.

    Where work runs on a CPU, all places are its ordinary memory. A `tolerance` of its own holds for every side, in place of the workload's;
    `changes` of its own holds in place of the workload's `changes`.
    """

    shape: tuple[int, ...]
    dtype: Any
    where: Where = "device"
    tolerance: Precision | None = None
    changes: Precision | None = None

    def __post_init__(self) -> None:
        require_where(self.where)
        if self.tolerance is not None:
            _require_bounds({"tolerance.rtol": self.tolerance.rtol, "tolerance.atol": self.tolerance.atol})
        if self.changes is not None:
            _require_bounds({"changes.rtol": self.changes.rtol, "changes.atol": self.changes.atol})
            if self.tolerance is not None:
                raise BenchmarkError("found tolerance and changes in one Spec; expected one: a tolerance holds for every side")

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Metric:
    """A figure that a workload reports beside time, in `unit`; `better` says which way is good. One with "neither" can be no goal."""

    value: float
    unit: str
    better: Better


def _no_outputs(**_: ShapeValue) -> dict[str, Spec]:
    """Of a serving workload, whose answers are tokens."""
    return {}


def _no_work(**_: ShapeValue) -> dict[str, float]:
    return {}


class _Stated:
    """Raises BenchmarkError, before __init__ would raise TypeError, for a field that a class has not and one that it must be given."""

    def __new__(cls, **stated: object) -> Self:
        known = inspect.signature(cls).parameters
        if unknown := [name for name in stated if name not in known]:
            near = difflib.get_close_matches(unknown[0], known, n=1)
            expected = f"as {near[0]}" if near else f"one of {', '.join(known)}"
            raise BenchmarkError(f"found {unknown[0]}; expected a field of {cls.__name__}, {expected}")
        required = [name for name, parameter in known.items() if parameter.default is inspect.Parameter.empty]
        if stated and (lacking := [name for name in required if name not in stated]):  # a copy states nothing here
            raise BenchmarkError(f"found no {', '.join(lacking)}; expected every {cls.__name__} to state {', '.join(required)}")
        return super().__new__(cls)


@dataclass(frozen=True, kw_only=True)
class Workload(_Stated):
    """The work of one pair.

    inputs(rand, **shape)     named tensors, nested dicts, lists, paths and scalars; with parameters `rank` and `ranks`, the shard of one
                              of the processes that a side runs in (0 of 1 where there is no other)
    outputs(**shape)          each output's name and Spec; none where a state evolves that is the only result
    reference(...)            the obvious slow answer, a tensor or a tuple in the order of `outputs`
    reference_rows(rows, ...) the same for some rows: of each output, along its first dimension, those in `rows` (int64, ascending,
                              where the inputs are). With it random rows of timed shapes are compared, and no row may hold Inf or NaN.
                              For a reference that takes above 2 s or a quarter of the memory; without one it is asked for all rows
                              at the shapes of `check_at`. All outputs have as many rows
    time_at                   the shape timed on a GPU, or several, named
    cpu_at                    the shape timed on a CPU; None: checked there, never timed
    check_at                  awkward shapes, checked and not timed
    work(**shape)             the least any implementation must do, by ceiling: bytes, flops, launches; with a parameter `ranks`, what a
                              process of so many must do, else what it must do however many there are
    rtol, atol                the tolerance of both sides, of each output whose Spec has none of its own
    changes                   the tolerance of the optimized side, where it lowers the precision by design
    changed_by                the sides that `changes` holds for: also "library", where the library lowers it in the same way
    reference_in              float64, or float32 with the reason in a comment; integers stay exact
    goal                      what the optimized side must improve: time; memory, the most device bytes during a step; accuracy, the
                              error against the reference where both sides are as fast; energy, joules of a step; setup, the time from
                              a fresh process that has imported torch, with empty compile caches, to the first right answer; or the
                              name of a figure that `metrics` returns
    clock                     device, launch (the host's launch cost counts) or host (wall clock)
    cache                     state of the caches before a timed call: of the L2, and of the page cache of input files
    place                     device, or host for work that never touches a GPU. An input of other work lies in the host's memory if it is
                              drawn with where="pinned" or "pageable", or made of draws and given to rand.place(tensor, where)
    constants                 inputs that `prepare` may pack or compile against; all others are rewritten between calls
    in_place                  inputs that a step may change; the harness refreshes them
    state, steps              "evolves": the harness never rewrites the `in_place` inputs once `prepare` has them, which are tensors and
                              leaves them as they are: training, optimizers, KV caches. Then `reference` is one step: it changes its
                              float64 copies of the state in place, and returns the outputs that are not state (None without any).
                              What the last of `steps` steps from a fresh `prepare` returns is compared, and all of the state behind
                              it. Timed calls go on from there, so a step must be possible any number of times
    ladder                    steps from the baseline to the optimized side: `optimized_<pair>_<step>`, which then is no variant, or a
                              side's path; `# predicts: STEP = 0.5 x STEP_BEFORE` in this file says what its own file does not
    metrics(...)              extra figures, self-reported
    ranks                     how many processes a side may run in, (2, 4, 8) say, each with a shard of its own; see common/docs/ranks.md
    serving                   what requests there are and what answers are right, in place of outputs, reference, tolerances and work;
                              `goal` is then a figure of theirs
    """

    inputs: Callable[..., dict[str, Any]]
    time_at: Shape | Mapping[str, Shape]
    check_at: tuple[Shape, ...]
    outputs: Callable[..., dict[str, Spec]] = _no_outputs
    work: Callable[..., dict[str, float]] = _no_work
    rtol: float = math.nan
    atol: float = math.nan
    reference: Callable[..., Any] | None = None
    reference_rows: Callable[..., Any] | None = None
    cpu_at: Shape | None = None
    changes: Precision | None = None
    changed_by: tuple[str, ...] = ("optimized",)
    reference_in: ReferenceIn = "float64"
    goal: str = TIME
    clock: Clock = "device"
    cache: Cache = "cold"
    place: Place = "device"
    constants: tuple[str, ...] = ()
    in_place: tuple[str, ...] = ()
    state: State = "refreshed"
    steps: int = 1
    ladder: tuple[str, ...] = ()
    metrics: Callable[..., dict[str, Metric]] | None = field(default=None)
    ranks: tuple[int, ...] = ()
    serving: Serving | None = None

    def __post_init__(self) -> None:
        if not self.check_at:
            raise BenchmarkError("check_at is empty; expected at least one awkward shape to check")
        if not self.time_at:
            raise BenchmarkError("time_at is empty; expected the shape to time on a GPU")
        keys = self.shape_keys
        for name, shape in [*self.timed_shapes.items(), *self._other_shapes()]:
            _require_shape(name, shape)
            if tuple(sorted(shape)) != keys:
                raise BenchmarkError(f"shape {name} has keys {sorted(shape)}; expected {list(keys)}, those of time_at")
            _require_alike(name, shape, next(iter(self.timed_shapes.values())))
        for name, choices in _CHOICES.items():
            if vars(self)[name] not in choices:
                raise BenchmarkError(f"{name}={vars(self)[name]!r}; expected {' or '.join(choices)}")
        for name in ("constants", "in_place", "changed_by"):
            if isinstance(vars(self)[name], str):
                raise BenchmarkError(f"{name}={vars(self)[name]!r} is one string; expected a tuple of names")
        if self.serving is not None:
            self._require_serving()
        else:
            self._require_answers()

    def _require_answers(self) -> None:
        if is_serving_goal(self.goal) and self.metrics is None:
            raise BenchmarkError(f"goal={self.goal!r} is a figure of served requests; expected serving=Serving(...) beside it")
        for name, left_out in (("outputs", _no_outputs), ("work", _no_work)):
            if vars(self)[name] is left_out:
                raise BenchmarkError(f"found no {name}; expected {name}=lambda ..., or serving=Serving(...)")
        for name in ("rtol", "atol"):
            if math.isnan(vars(self)[name]):
                raise BenchmarkError(f"found no {name}; expected a finite bound that is not negative")
        lowered = {} if self.changes is None else {"changes.rtol": self.changes.rtol, "changes.atol": self.changes.atol}
        _require_bounds({"rtol": self.rtol, "atol": self.atol, **lowered})
        self._require_goal()
        self._require_reference()
        self._require_ranks()

    def _require_ranks(self) -> None:
        counts: object = self.ranks  # what a file states is typed by nobody
        if not isinstance(counts, tuple) or not all(isinstance(count, int) and count > 1 for count in counts):
            raise BenchmarkError(f"ranks={counts!r}; expected a tuple of how many processes a side may run in, as in (2, 4, 8)")
        if not self.ranks:
            return
        if RANK_NAMES[0] not in inspect.signature(self.inputs).parameters:
            raise BenchmarkError(f"ranks={self.ranks} and inputs do not ask for `rank`; expected each process to have a shard of its own")
        if taken := sorted({*PEER_NAMES} & {*self.shape_keys}):
            raise BenchmarkError(f"shapes have an entry {taken[0]!r} and ranks={self.ranks}; expected another name: functions ask for it")
        if self.reference_rows is not None:
            raise BenchmarkError(f"found reference_rows and ranks={self.ranks}; expected reference, which is asked for each rank's answer")

    def _require_serving(self) -> None:
        assert self.serving is not None
        stated = {
            "outputs": self.outputs is not _no_outputs,
            "work": self.work is not _no_work,
            "reference": self.reference is not None,
            "reference_rows": self.reference_rows is not None,
            "in_place": bool(self.in_place),
            "state": self.evolves,
            "rtol": not math.isnan(self.rtol),
            "atol": not math.isnan(self.atol),
        }
        if both := [name for name, found in stated.items() if found]:
            raise BenchmarkError(f"found serving and {', '.join(both)}; expected serving alone, which says what answers are right")
        if not is_serving_goal(self.goal) and self.goal != MEMORY:
            figures = ", ".join((*LATENCIES, *RATES))
            raise BenchmarkError(
                f"goal={self.goal!r} and serving; expected memory or one of {figures}, of a latency also .p50, .p95 or .p99"
            )
        for name, shape in self.timed_shapes.items():
            traffic = self.serving.traffic_at(shape)
            if traffic.share_of_saturation > 1.0 and is_latency(self.goal):  # of the command line it may be: no goal of that is gated
                found = f"found arrivals at {traffic.share_of_saturation:g} of saturation and goal={self.goal!r}"
                raise BenchmarkError(f"serving: {found}; expected at most 1.0, for beyond it latency grows as long as requests come")
            count = traffic.count
            if is_latency(self.goal) and self.goal.endswith(TAIL) and count < FEWEST_FOR_TAIL:
                found = f"goal={self.goal!r} and {count} requests at shape {name}"
                raise BenchmarkError(f"{found}; expected {FEWEST_FOR_TAIL} a trace, so that {LEAST_BEYOND} lie beyond it")

    def _require_goal(self) -> None:
        if self.goal not in GOALS and self.metrics is None:
            raise BenchmarkError(f"goal={self.goal!r}; expected {', '.join(GOALS)}, or the name of a figure that metrics returns")
        if self.goal in OF_A_GPU and self.place == "host":
            raise BenchmarkError(f"goal={self.goal!r} and place='host'; expected place='device', as that figure is a GPU's")

    def _require_reference(self) -> None:
        if self.reference is None and (self.reference_rows is None or self.evolves):
            raise BenchmarkError("found no reference; expected one, or reference_rows where no state evolves")
        if self.evolves and self.reference_rows is not None:
            raise BenchmarkError("found reference_rows and state='evolves'; expected reference alone, which does a whole step")
        if self.evolves and not self.in_place:
            raise BenchmarkError("state='evolves' and in_place is empty; expected the names of the inputs that are state")
        # In a single step from a fresh prepare nobody can tell a state that is kept from one that is not.
        if self.steps < 2 if self.evolves else self.steps != 1:
            expected = "at least 2 steps" if self.evolves else "state='evolves' where there are several"
            raise BenchmarkError(f"steps={self.steps} and state={self.state!r}; expected {expected}")

    def _other_shapes(self) -> list[tuple[str, Shape]]:
        checks = [(f"check_at[{i}]", shape) for i, shape in enumerate(self.check_at)]
        return checks if self.cpu_at is None else [*checks, ("cpu_at", self.cpu_at)]

    def inputs_of(self, rand: Any, shape: Shape, rank: int, ranks: int) -> dict[str, Any]:
        """Call the workload's `inputs` at `shape`, for process `rank` of `ranks`; `rand` is the source of its random tensors."""
        return self.inputs(rand, **_asked(self.inputs, place_of(rank, ranks), shape), **shape)

    def outputs_of(self, shape: Shape, place: Mapping[str, Any]) -> dict[str, Spec]:
        """Each output's name and Spec at `shape` for one process; `place` has what `outputs` may ask for of it, by name."""
        return self.outputs(**_asked(self.outputs, place, shape), **shape)

    def work_of(self, shape: Shape, ranks: int = 1) -> dict[str, float]:
        """The least that each process of `ranks` must do at `shape`, by ceiling."""
        return self.work(**_asked(self.work, {RANK_NAMES[1]: ranks}, shape), **shape)

    @property
    def timed_shapes(self) -> dict[str, Shape]:
        """The shapes to time on a GPU, by name; a single one is called `default`."""
        if all(isinstance(value, Mapping) for value in self.time_at.values()):
            return {name: dict(shape) for name, shape in self.time_at.items() if isinstance(shape, Mapping)}
        return {DEFAULT_SHAPE: dict(self.time_at)}  # type: ignore[arg-type]

    @property
    def shape_keys(self) -> tuple[str, ...]:
        """Names of the shape's entries, sorted."""
        return tuple(sorted(next(iter(self.timed_shapes.values()))))

    @property
    def evolves(self) -> bool:
        """Whether the inputs of `in_place` are a state that only steps change."""
        return self.state == "evolves"

    def may_change(self, name: str) -> bool:
        """Whether a step may change the input tensor of the dotted `name`."""
        return name.partition(".")[0] in self.in_place

    def tolerance(self, side: str, spec: Spec | None = None) -> Precision:
        """The tolerance that `side` (baseline, optimized, library) is held to, in an output of that `spec`."""
        if spec is not None and spec.tolerance is not None:
            return spec.tolerance
        if self.changes is not None and side in self.changed_by:
            return spec.changes if spec is not None and spec.changes is not None else self.changes
        return Precision(self.rtol, self.atol)


def _asked(function: Callable[..., Any], place: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
    asked = inspect.signature(function).parameters.keys() - shape.keys()
    return {name: value for name, value in place.items() if name in asked}


def _require_shape(name: str, shape: object) -> None:
    if not isinstance(shape, Mapping):
        raise BenchmarkError(f"shape {name} is {shape!r}; expected a dict of entries (a tuple of one needs its comma)")
    for key, value in shape.items():
        if key in RANK_NAMES:
            raise BenchmarkError(f"shape {name} has an entry {key!r}; expected another name: that is which process inputs() is asked for")
        if not isinstance(value, (int, float, bool, str)):
            raise BenchmarkError(f"shape {name} has {key}={value!r}; expected an int, a float, a bool or a str")


def _require_alike(name: str, shape: Shape, first: Shape) -> None:
    for key, value in shape.items():
        if isinstance(value, str) != isinstance(first[key], str):
            kind, expected = type(value).__name__, type(first[key]).__name__
            raise BenchmarkError(f"shape {name} has {key}={value!r}, of type {kind}; expected {expected}, as in time_at")


def call_by_name(function: Callable[..., Any], available: Mapping[str, Any], where: str) -> Any:
    """Call `function` with those entries of `available` that its parameters name.

    Raises BenchmarkError, naming `where`, if a parameter without default is not available.
    """
    arguments = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            return function(**available)
        if name in available:
            arguments[name] = available[name]
        elif parameter.default is inspect.Parameter.empty:
            raise BenchmarkError(f"{where} asks for {name!r}; expected a subset of {sorted(available)}")
    return function(**arguments)
