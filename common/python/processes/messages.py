"""What parent and children say to each other: every message is a type, and every answer echoes its request's nonce."""

from __future__ import annotations

import secrets
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from common.python.errors import Status
from common.python.machine.ceilings import Ceiling
from common.python.pairs.revisions import Past
from common.python.pairs.workload import Where
from common.python.results import CompilerFinding, OutputError, ReportedMetric, ServedRequest

ShapeEntries = dict[str, int | float | bool | str]

MOST_QUEUED_NS: Final = 2_500_000  # of the host's a call: 500 launches through ctypes on an H200


class Message(BaseModel):
    """Base of all messages. A number keeps its type on the way: 1 stays an int, True stays a bool."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class OfRank(Message):
    """Something of process `rank` of the `ranks` of a side, or of a survey."""

    rank: int = 0
    ranks: int = 1


class Request(Message):
    """Something a child is asked to do."""

    nonce: str = Field(default_factory=lambda: secrets.token_hex(8))

    def for_rank(self, rank: int, ranks: int) -> Self:
        """What process `rank` of the `ranks` of a side is asked: the same as any other, unless the request says which it is."""
        fields = {"rank": rank, "ranks": ranks}
        return self.model_copy(update=fields) if fields.keys() <= type(self).model_fields.keys() else self


class Answer(Message):
    """What came of a request, and what torch.compile did in that process since its side was prepared; the project's files it imported."""

    nonce: str
    compiler: list[CompilerFinding] = []
    imported: list[str] = []


class Describe(Request):
    """Load a workload, apply `kwargs` to its timed shapes and try it at its smallest check shape; `weigh`: tell what they take."""

    kind: Literal["describe"] = "describe"
    workload: str
    sides: dict[str, str]
    kwargs: dict[str, str]
    weigh: bool = False


class DeviceBytes(Message):
    """Bytes of inputs and outputs in device memory: of one rank of a side, and of the referee, which has those of the host there too."""

    side: int
    referee: int


class Described(Answer):
    """What the parent must know of a workload; `timed` and `cpu_at` have kwargs applied. Empty `cpu_at`: never timed there.

    `work` is what a process of any implementation must do at each of `timed`, by ceiling, and `cpu_work` at `cpu_at`; first by the number
    of a side's processes, each of `ranks` or 1.
    `mismatch` is a sentence on the first entry point of a .cu side that does not fit the workload, or empty. `ranks` are the numbers of
    processes that a side can run in, none where it is one. `assets` are the files of the tree that inputs come from: their SHA-256 by
    name. `device_bytes` is what `timed` shapes take, where that can be told without data.
    """

    kind: Literal["described"] = "described"
    goal: str
    clock: Literal["device", "launch", "host"]
    cache: Literal["cold", "hot"]
    place: Literal["device", "host"]
    timed: dict[str, ShapeEntries]
    cpu_at: ShapeEntries
    check_at: list[ShapeEntries]
    work: dict[int, dict[str, dict[str, float]]]
    cpu_work: dict[int, dict[str, float]]
    mismatch: str
    assets: dict[str, str] = {}
    serving: bool = False
    places: dict[str, Where] = {}
    ranks: list[int] = []
    device_bytes: dict[str, DeviceBytes] = {}


class Probe(Request):
    """Ask what torch can see."""

    kind: Literal["probe"] = "probe"


class Probed(Answer):
    """torch's version and whether it can use a CUDA device."""

    kind: Literal["probed"] = "probed"
    torch: str
    cuda: bool


class Build(Request):
    """Compile a .cu side into the cache."""

    kind: Literal["build"] = "build"
    source: str
    root: str
    cache: str
    architectures: list[str]
    flags: list[str]


class BuildDone(Answer):
    """Where the library is, and what building it took in seconds."""

    kind: Literal["build_done"] = "build_done"
    library: str
    seconds: float
    cached: bool
    log: str


class Open(Request, OfRank):
    """Make a context on the GPU; with `choose`, take the stream there, too, which `Load` would else do while others are at work."""

    kind: Literal["open"] = "open"
    choose: bool


class Load(Request, OfRank):
    """Import a workload and one side of it. `library` is the built .cu, empty for Python; `folder` takes input files.

    Compile caches are new with `cold`, lie in the folder `caches` where that is named, and else where the compilers have them. With both,
    Triton's are new and torch.compile's are those of `caches`. `digest` is of both files' text as the run began. With `watched`, CUPTI is
    started first: before a `prepare` captures a graph, or its nodes might be told as one. The process is `rank` of the side's `ranks`; they
    find each other by files whose names begin with `rendezvous`. `cores` are those that it may use; empty: those that it was started on.
    A side that lies in `past` finds its modules there.
    """

    kind: Literal["load"] = "load"
    workload: str
    side: str
    library: str
    device: Literal["cuda", "cpu"]
    interpret: bool
    folder: str
    cold: bool
    caches: str = ""
    cores: list[int] = []
    triton: bool
    watched: bool
    digest: str
    rendezvous: str = ""
    past: Past | None = None


class Loaded(Answer):
    """Seconds that loading took, with those of starting Triton where the side launches it."""

    kind: Literal["loaded"] = "loaded"
    seconds: float


class Prepare(Request):
    """Make `copies` of the inputs of `seed` at `shape`, set the side up on each, then give live inputs the values of `live_seed`."""

    kind: Literal["prepare"] = "prepare"
    shape: ShapeEntries
    seed: int
    live_seed: int
    copies: int = 1  # each has buffers of its own, for a step that is too short, or whose time depends on where they lie
    call: bool = False  # each once, as with several copies: what is compiled is loaded then, and `seconds` has that


class Prepared(Answer):
    """Set-up time in seconds."""

    kind: Literal["prepared"] = "prepared"
    seconds: float


class Dump(Message):
    """One output on its way to the referee: raw bytes in a file, or `size` of them in GPU memory that `handle` opens."""

    name: str
    path: str
    handle: str = ""
    offset: int = 0
    size: int = 0


class Check(Request):
    """Call the step once for every seed, on poisoned memory, and keep the outputs in files whose names start with `prefix`.

    Where the state evolves, a seed stands for `steps` calls from a fresh `prepare`, on inputs of seed, seed + 1 and so on, the last one's
    outputs being kept; for the first of `seeds` the latest Prepare is the fresh one.
    """

    kind: Literal["check"] = "check"
    seeds: list[int]
    prefix: str


class Outputs(OfRank):
    """A call's, with a state that evolves, and what of that a timed call `found`; seeds of its inputs, and of `earlier` calls'."""

    seed: int
    outputs: list[Dump]
    found: list[Dump] = []
    earlier: list[int] = []


class Call(Outputs):
    """A call of `rank` of `ranks`: its inputs' digest, inputs it changed, its outputs; `escaped`: past its stream or its clock.

    "late": an output still changed when the call was over. "early": one was there before the stream of a timed call had come to it.
    Where a state evolves, a Check's call is the last of several, the digest its own, `seed` the first's. `behind_ns`: the GPU worked on.
    """

    digest: str
    modified: list[str]
    escaped: Literal["", "early", "late"]
    behind_ns: float = 0.0


class Checked(Answer):
    """The calls of a `Check`, the first one's seconds, and whether Triton's interpreter ran a kernel of the side by now."""

    kind: Literal["checked"] = "checked"
    calls: list[Call]
    first_call_s: float
    interpreted: bool = False


class Warm(Request):
    """Call the step until two successive blocks agree, or exactly `calls` times if that is not negative.

    A sample calls `calls_per_sample` copies once, the next one the next copies. `hold`: find out first whether the stream can be held over
    the step. The calling thread of rank i stays on the i-th of `cores`, if there are any; threads that the side has already do not.
    """

    kind: Literal["warm"] = "warm"
    seed: int
    calls: int
    seconds: float
    hold: bool
    cores: list[int] = []
    calls_per_sample: int = 1


class Warmed(Answer):
    """A call's time and a whole sample's (rewriting inputs, flushing caches and all) in ns, and peak device memory in bytes.

    `call_s` is what the first call here took, which may have been the first of all. `holds`: the stream can be held while the step is
    queued, so that launch latency can be hidden. `numa_nodes`: where inputs and outputs on the host lie, if the kernel tells.
    """

    kind: Literal["warmed"] = "warmed"
    calls: int
    holds: bool
    step_ns: float
    sample_ns: float
    call_s: float = 0.0
    peak_memory_bytes: int
    metrics: dict[str, ReportedMetric]
    numa_nodes: list[int] = []


class Weigh(Request):
    """Call the step of what was prepared, and tell what memory it takes; on a GPU no other process may take any meanwhile."""

    kind: Literal["weigh"] = "weigh"


class Weighed(Answer):
    """Bytes of a side: the most in torch's allocator in a step, and beside it; on a CPU all that it allocates, in so many blocks."""

    kind: Literal["weighed"] = "weighed"
    allocated_bytes: int
    outside_bytes: int
    blocks: int = 0


class Time(Request):
    """Take `count` samples; call i, counted over all samples and copies, runs on the inputs of seed + i.

    The outputs of the calls in `picks` are kept for the referee. `hold` hides the host's launch latency.
    """

    kind: Literal["time"] = "time"
    seed: int
    count: int
    picks: list[int]
    prefix: str
    hold: bool
    sustained: bool


class Timed(Answer):
    """Samples in ns a call, SM clocks in Hz, the host's ns of queueing in all, how many more were void, and the picked calls' outputs.

    `began_ns` says when the host's clock of each sample started; of several ranks, joined, how far apart theirs did.
    """

    kind: Literal["timed"] = "timed"
    samples_ns: list[float]
    sm_clock_hz: list[float]
    queued_ns: float = 0.0
    void: int
    picks: list[Call]
    notes: list[str]
    began_ns: list[int] = []


class Span(Message):
    """Something that the GPU did, on which stream; times in ns from an origin that the spans of one answer share."""

    name: str
    start_ns: float
    end_ns: float
    stream: int = 0


class Launch(Message):
    """One kernel that a step ran; those that one `call` of the host started, as a graph does, share its number.

    None stands for what nobody told who watched.
    """

    kernel: str
    call: int
    in_graph: bool
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: int | None
    shared_bytes: int
    registers: int | None
    occupancy_percent: float | None


class Rehearse(Request):
    """Prepare the side, which was loaded to be watched, at `shape`, and call its step once, which may set up or compile what it needs."""

    kind: Literal["rehearse"] = "rehearse"
    shape: ShapeEntries
    seed: int
    live_seed: int


class Watch(Request):
    """Watch what a step that was rehearsed does on the GPU, which nothing else may use meanwhile."""

    kind: Literal["watch"] = "watch"


class Ahead(Request):
    """Load a Triton side as if there were a GPU of `capability`, and compile what a step at `shape` launches; `prefix` names cubins."""

    kind: Literal["ahead"] = "ahead"
    workload: str
    side: str
    shape: ShapeEntries
    capability: tuple[int, int]
    prefix: str
    past: Past | None = None


class Observed(Answer):
    """What a step launched, all that it did on a GPU, and cubins with its kernels' machine code."""

    kind: Literal["observed"] = "observed"
    launches: list[Launch]
    spans: list[Span]
    cubins: list[str]
    missed: str  # a sentence on what it did besides, of which neither launches nor code are known; empty if that is all
    calls: dict[str, int] = {}  # of the host to CUDA in a step that was watched: how often each was made


class Attend(Request, OfRank):
    """Get ready to judge `rank` of `ranks`, on its GPU: a CUDA context takes as long as many judgements."""

    kind: Literal["attend"] = "attend"
    device: Literal["cuda", "cpu"]


class Ready(Answer):
    """Ready."""

    kind: Literal["ready"] = "ready"


class Judge(Request, Outputs):
    """Hold outputs of `rank` of `ranks` against the reference, one step on from what was `found`; without a `side` only make it."""

    kind: Literal["judge"] = "judge"
    workload: str
    device: Literal["cuda", "cpu"]
    folder: str
    side: str
    shape: ShapeEntries
    prepare_seed: int


class Judged(Answer):
    """Digest of the inputs as the referee makes them, each output's error, a sentence on the first mismatch or nothing, and notes."""

    kind: Literal["judged"] = "judged"
    digest: str
    outputs: dict[str, OutputError]
    mismatch: str
    notes: list[str] = []


class AskTraffic(Request):
    """Ask the client what a serving workload's traffic is at `shape`."""

    kind: Literal["ask_traffic"] = "ask_traffic"
    workload: str
    shape: ShapeEntries


class TrafficTold(Answer):
    """How many requests a trace has, the rate in requests/s that is stated (0: none), or the share of saturation, and the service level."""

    kind: Literal["traffic_told"] = "traffic_told"
    count: int
    per_s: float
    share_of_saturation: float
    slo_ttft_ms: float
    slo_tpot_ms: float


class Replay(Request):
    """Replay the trace of `seed` through the shared memory at `ring`, and stamp what comes back, which is looked for every `glance_s`.

    `picks` random answers are kept whole for the referee. `closed_loop`: all arrive at once. The client keeps off a `core` from 0 on.
    """

    kind: Literal["replay"] = "replay"
    workload: str
    shape: ShapeEntries
    seed: int
    ring: str
    closed_loop: bool
    saturation_per_s: float
    picks: int
    core: int
    seconds: float
    glance_s: float = 1e-5


class AnsweredRequest(Message):
    """One request as its client saw it: prompt, tokens, and of the logits behind each token those of `columns`."""

    id: int
    prompt: list[int]
    tokens: list[int]
    columns: list[int]
    probed: list[list[float]]


class Replayed(Answer):
    """What the client saw: all requests' stamps, the whole answers of some, and a sentence on what it did not get, or ""."""

    kind: Literal["replayed"] = "replayed"
    requests: list[ServedRequest]
    answers: list[AnsweredRequest]
    problem: str


class Serve(Request):
    """Call the step once, on the trace that comes through the shared memory at `ring`; its thread stays on `core`, unless negative."""

    kind: Literal["serve"] = "serve"
    ring: str
    core: int


class Served(Answer):
    """The digest of the inputs after the step, its peak of device memory in bytes, and what the side reported of it."""

    kind: Literal["served"] = "served"
    digest: str
    peak_memory_bytes: int
    metrics: dict[str, ReportedMetric]


class JudgeTrace(Request, OfRank):
    """Hold answered requests to the workload's logits, one request alone, on the inputs of `prepare_seed`.

    With `teeth`, find out too how many of as many requests would be refused if their context were another's, or had a stale block.
    """

    kind: Literal["judge_trace"] = "judge_trace"
    workload: str
    device: Literal["cuda", "cpu"]
    folder: str
    side: str
    shape: ShapeEntries
    prepare_seed: int
    answers: list[AnsweredRequest]
    teeth: bool


class TraceJudged(Answer):
    """Digest of the inputs as the referee makes them, the errors of tokens and logits in deviations of a row, and the first mismatch.

    Of `tried` contexts of other requests `refused_swapped` were refused; of `tried_stale` contexts with a stale block `refused_stale`.
    """

    kind: Literal["trace_judged"] = "trace_judged"
    digest: str
    outputs: dict[str, OutputError]
    mismatch: str
    tried: int
    tried_stale: int
    refused_swapped: int
    refused_stale: int
    weight_bytes: int = 0


class Survey(Request, OfRank):
    """Measure a topic of a device's ceilings; `index` is CUDA's. Ranks, who find each other by `rendezvous`, measure theirs together."""

    kind: Literal["survey"] = "survey"
    device: Literal["cuda", "cpu"]
    index: int
    topic: str
    folder: str  # on the storage that is measured
    rendezvous: str = ""


class Surveyed(Answer):
    """The size of the device's last cache in bytes, the topic's ceilings, and why some were not measured, by name."""

    kind: Literal["surveyed"] = "surveyed"
    cache_bytes: int
    ceilings: list[Ceiling]
    missing: dict[str, str]
    notes: list[str]


Started = Literal["triton", "compiler", "meshes"]


class Fork(Request):
    """Asks for a child whose socket comes with the message, and which finds imported what it `starts`; it may use `cores`, all if none."""

    kind: Literal["fork"] = "fork"
    role: Literal["worker", "referee", "describer", "surveyor", "client"]
    log: str
    core: int
    starts: list[Started] = []
    cores: list[int] = []


class Forked(Answer):
    """The child's process id."""

    kind: Literal["forked"] = "forked"
    pid: int


class Reap(Request):
    """Asks the fork server how a child ended."""

    kind: Literal["reap"] = "reap"
    pid: int
    seconds: float


class Reaped(Answer):
    """Whether the child has ended, and its exit code; a negative one is the signal that killed it."""

    kind: Literal["reaped"] = "reaped"
    ended: bool
    code: int


_OfASide = Build | Open | Load | Prepare | Check | Warm | Weigh | Time | Rehearse | Watch | Ahead | Serve
_OfTheOthers = Describe | Probe | Attend | Judge | AskTraffic | Replay | JudgeTrace | Survey | Fork | Reap
AnyRequest = Annotated[_OfASide | _OfTheOthers, Field(discriminator="kind")]


class Failed(Answer):
    """The request ended with a status and one sentence."""

    kind: Literal["failed"] = "failed"
    status: Status
    reason: str
