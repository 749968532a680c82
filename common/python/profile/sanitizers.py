"""CUDA sides under compute-sanitizer, at the shapes that are checked: a chapter in one process a tool; each side alone if it found some.

What each tool can see of TMA, tensor cores and clusters stands in common/docs/profiling-and-sanitizers.md. Every tensor is an allocation
of its own there: in torch's cache of blocks the memory behind an array is another's, not nobody's.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from common.python.build.sass import Unreadable, base_name, read_code
from common.python.errors import SideFailure
from common.python.machine.description import Machine, child_environment
from common.python.processes.profile_job import Job, JobSide
from common.python.profile.tools import Ended, SideCrashed, ToolFailed, run_job, tool
from common.python.project import PROJECT_ROOT, import_folders
from common.python.session.builds import build_row
from common.python.session.planning import Plan
from common.python.session.session import Sanitized, Session

_OPTIONS = ("--target-processes", "application-only", "--report-api-errors", "no")
_SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")
_MESSAGE = "========="
_NOT_OF_A_SIDE = ("COMPUTE-SANITIZER", "SUMMARY:", "Target application", "Error: process")
_BACKTRACE = ("Saved host backtrace", "Host Frame")
_UNSURE = "Results might be incorrect"  # of more barriers than it can follow
_FAILURES = ("Internal Sanitizer Error", "Device not supported", "No attachable process", _UNSURE)
_LINE = re.compile(r" in \S+\.\w+:\d+")  # sides are built with -lineinfo, and what is inlined is named in a kernel's place; torch is not
_LONGEST = 300


def sanitize(plans: Sequence[Plan], session: Session, machine: Machine) -> dict[str, tuple[Sanitized, ...]]:
    """What each tool of `--sanitize` says of each of a chapter's rows, by target, one a tool whatever the others found.

    Nothing that goes wrong is raised: it is a note of the rows.
    """
    sides = _cuda_sides(plans, session, machine)
    said = [_said_by(name, plans, sides, session) for name in session.settings.sanitize]
    return {plan.target: tuple(of_tool[plan.target] for of_tool in said) for plan in plans}


def _said_by(name: str, plans: Sequence[Plan], sides: Mapping[str, JobSide], session: Session) -> dict[str, Sanitized]:
    """What the tool `name` says of each row, by target."""
    if not sides:
        without = "no CUDA side that runs on this machine" if any(plan.device == "cuda" for plan in plans) else "no CUDA device"
        return {plan.target: Sanitized(note=f"sanitize: {name}: {without}") for plan in plans}
    session.tell(f"{name} of {len(sides)} sides of {plans[0].selection.pair.directory}")
    try:
        if _is_clean(name, sides, session):
            return {plan.target: Sanitized(note=f"sanitize: {name} found nothing in {_files(plan, sides)}") for plan in plans}
    except ToolFailed as failure:
        return {plan.target: Sanitized(note=f"sanitize: {name}: {failure}") for plan in plans}
    found = {file: said for file, side in sides.items() if (said := _alone(name, side, session))}
    return {plan.target: _of(plan, sides, found, name) for plan in plans}


def _cuda_sides(plans: Sequence[Plan], session: Session, machine: Machine) -> dict[str, JobSide]:
    """The .cu sides that can run here, by file: two rows may share one."""
    sides = {}
    for plan in plans:
        if plan.device != "cuda" or plan.skip or plan.ranks > 1:
            continue
        with contextlib.suppress(SideFailure):  # its row says what is wrong
            build_row(plan, session, machine)
        for side in plan.sides:
            file = str(plan.file(side))
            if file in session.builds:
                sides[file] = JobSide(
                    label=f"{plan.target}/{side}",
                    workload=str(plan.selection.pair.workload),
                    side=file,
                    library=session.builds[file].library,
                    shapes=[dict(shape) for shape in plan.described.check_at],
                )
    return sides


def _files(plan: Plan, sides: Mapping[str, JobSide]) -> str:
    return ", ".join(plan.file(side).name for side in plan.sides if str(plan.file(side)) in sides) or "its sides: none is CUDA"


def _of(plan: Plan, sides: Mapping[str, JobSide], found: Mapping[str, Sanitized], name: str) -> Sanitized:
    mine = sorted((found[str(plan.file(side))] for side in plan.sides if str(plan.file(side)) in found), key=lambda said: not said.finding)
    return mine[0] if mine else Sanitized(note=f"sanitize: {name} found nothing in {_files(plan, sides)}")


def _is_clean(name: str, sides: Mapping[str, JobSide], session: Session) -> bool:
    """Whether all sides together gave no finding. Raises ToolFailed."""
    try:
        ended = _under(name, list(sides.values()), session, "all")
    except SideCrashed:  # perhaps of what it found; each alone will tell
        return False
    return _UNSURE not in ended.log and _count(ended) == 0


def _alone(name: str, side: JobSide, session: Session) -> Sanitized | None:
    """What the tool finds in kernels of one side, or why it did not come to its end; None if it did and found nothing."""
    file = Path(side.side)
    try:
        ended, failure = _under(name, [side], session, file.stem), ""
    except SideCrashed as crash:
        ended, failure = crash.ended, str(crash)
    except ToolFailed as failed:
        return Sanitized(note=f"sanitize: {name}: {file.name}: {failed}")
    found = [block for block in findings_in(ended.log) if _is_of(side, block)]
    if found:
        more = f", and {len(found) - 1} more," if len(found) > 1 else ""
        return Sanitized(finding=f"{file.name}: {name} found {found[0][:_LONGEST]}{more} at the check shapes; expected nothing")
    try:
        _count(ended)
    except ToolFailed as failed:
        failure = str(failed)
    return Sanitized(note=f"sanitize: {name}: {file.name}: {failure}") if failure else None


def _is_of(side: JobSide, block: str) -> bool:
    """Whether a finding names a line, or a kernel that the side brings; what torch's own do is not the side's."""
    try:
        return bool(_LINE.search(block)) or any(base_name(kernel.name) in block for kernel in read_code(Path(side.library)))
    except Unreadable:
        return True


def findings_in(log: str) -> list[str]:
    """The findings that compute-sanitizer printed, each in one line and without where the host was."""
    blocks: list[list[str]] = []
    for line in log.splitlines():
        if not line.startswith(_MESSAGE):
            continue
        text = line.removeprefix(_MESSAGE)
        if text.strip() and not text.startswith("  "):
            blocks.append([text.strip()])
        elif blocks and text.strip():
            blocks[-1].append(text.strip())
    cut = [block[: next((i for i, text in enumerate(block) if text.startswith(_BACKTRACE)), len(block))] for block in blocks]
    return [" ".join(block) for block in cut if block and not any(words in block[0] for words in _NOT_OF_A_SIDE)]


def _count(ended: Ended) -> int:
    """How many findings the tool says it has. Raises ToolFailed where it does not come to say that."""
    summaries = _SUMMARY.findall(ended.log)
    failure = next((words for words in _FAILURES if words in ended.log), "")
    if failure or not summaries:
        told = ended.line_with(failure) if failure else f"no summary, exit code {ended.code} ({ended.last_words})"
        raise ToolFailed(f"{told}; expected a count of findings")
    return sum(int(count) for count in summaries)


def _under(name: str, sides: Sequence[JobSide], session: Session, log: str) -> Ended:
    path = tool("compute-sanitizer", "install the CUDA toolkit's compute-sanitizer")
    folder = session.logs(sides[0].label.rpartition(":")[0], name)
    job = Job(
        mode="check",
        device="cuda",
        seed=session.new_seed(),
        folder=str(session.inputs_folder),
        progress=str(folder / f"{log}_progress.txt"),
        log="",  # it may print from within the process
        sides=list(sides),
    )
    packages = import_folders(session.settings.root)
    environment = child_environment(PROJECT_ROOT, "cuda", packages=packages) | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    limit_s = session.limit_s("profile") * len(sides)
    return run_job([path, "--tool", name, *_OPTIONS], job, folder / f"{log}.log", environment, limit_s)
