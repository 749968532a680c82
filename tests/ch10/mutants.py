"""A side of chapter 10 without one of its waits, and with random delays in its roles: text alone, nothing is built here."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.ch10.emulated import texts_of, waits
from tests.support.teeth import ROOT

DELAYS = Path(__file__).with_name("delays.cuh")

# What waits, or puts in order, by kind. Each is a statement, but for the last: it asks until it is told yes, and without waiting once.
KINDS = {
    "mbarrier": r"\bbarrier_wait\([^;]*\);",
    "products": r"\bwgmma_wait<\d>\(\);",
    "sums": r"\bwgmma_fence\(\);",
    "stores": r"\bwait_until_stores_have_read\(\);",
    "warpgroup": r"\bwarpgroup_sync\([^;]*\);",
    "warp": r"\b__syncwarp\(\);",
    "block": r"\b__syncthreads\(\);",
    "cluster": r"\bcluster_sync\(\);",
    "fence": r"\b(?:show_to_async_proxy|show_barriers_to_cluster|__threadfence)\(\);",
    "flag": r"\bwhile (?=\(atomicCAS\()",
}

# The functions of common/cuda that begin and end with a delay: whatever a role does that another one waits for, or waits for itself.
DELAYED = {
    "mbarrier.cuh": ("barrier_init", "barrier_arrive", "barrier_expect", "barrier_wait"),
    "tma.cuh": ("load_tile", "load_tile_multicast", "store_tile", "wait_until_stores_have_read", "show_to_async_proxy"),
    "warpgroup.cuh": ("warpgroup_sync",),
    "wgmma.cuh": ("wgmma_fence", "wgmma_wait"),
    "cluster.cuh": ("cluster_sync", "cluster_arrive"),
}

_LOOP = re.compile(r"^( *)while \((!complete|atomicCAS\(.*\) != 1)\) \{$", re.MULTILINE)


@dataclass(frozen=True)
class Wait:
    """One line that waits: file:line, its text, and a key of KINDS."""

    place: str
    text: str
    kind: str


def waits_of(side):
    """Every wait in the code that the side shares with nobody but its chapter, by file and line."""
    files = sorted(texts_of(side))
    found = [Wait(*wait, kind) for file in files for kind, pattern in KINDS.items() for wait in waits(file, pattern)]
    return sorted(found, key=lambda wait: (files.index(wait.place.split(":")[0]), int(wait.place.split(":")[1])))


def without(text, wait):
    """A file's text without that wait. Raises ValueError if it is not where it is said to be."""
    lines = text.splitlines(keepends=True)
    number = int(wait.place.split(":")[1]) - 1
    lines[number], count = re.subn(KINDS[wait.kind], "if " if wait.kind == "flag" else "{}", lines[number])
    if count != 1:
        raise ValueError(f"{wait.place}: found {count} waits of kind {wait.kind}; expected one")
    return "".join(lines)


def bounded(text):
    """Loops that wait end the kernel after a while."""
    return _LOOP.sub(r"\1uint64_t since = 0;\n\1while (\2) {\n\1    since = still_waiting(since);", text)


def delayed(text, functions, first):
    """A header whose functions begin and end with delays, numbered from `first`. Raises ValueError for a function that is not there."""
    for place, name in enumerate(functions):
        head = rf"^(__device__ inline \w+ {name}\([^{{\n]*\) \{{)"
        begin, end = f" delay({first + 2 * place});", f" delay({first + 2 * place + 1});"
        text, count = re.subn(rf"{head}(.*?)( ?\}}$|^\}})", rf"\1{begin}\2{end}\3", text, count=1, flags=re.MULTILINE | re.DOTALL)
        if count != 1:
            raise ValueError(f"found no function {name}; expected it in the header that is named beside it")
    return text.replace("#pragma once\n", '#pragma once\n#include "delays.cuh"\n')


def write(side, folder, wait=None):
    """The side's sources in `folder`, delayed, and without `wait` if there is one; returns the path of the side."""
    (folder / "common/cuda").mkdir(parents=True, exist_ok=True)
    shutil.copy(DELAYS, folder)
    for number, (header, functions) in enumerate(DELAYED.items()):
        text = (ROOT / "common/cuda" / header).read_text()
        (folder / "common/cuda" / header).write_text(bounded(delayed(text, functions, 16 * number)))
    for file, text in texts_of(side).items():
        here = wait is not None and wait.place.split(":")[0] == file
        (folder / file).write_text(bounded(without(text, wait) if here else text))
    return folder / side
