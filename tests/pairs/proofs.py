"""What the sides of a pair claim, and what machine code says of it, on every architecture for which a side is built; no GPU is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from common.python.build.nvcc import SUPPORTED, architectures_for, build
from common.python.build.sass import Kernel, read_code
from common.python.child.sides.loader import load_workload
from common.python.machine.needs import unmet_capability
from common.python.pairs.claims import IN_CODE, INSTRUCTIONS, Claim
from common.python.pairs.directives import Directives, read_directives
from common.python.pairs.discovery import Pair
from common.python.pairs.sources import cubins_of
from common.python.pairs.workload import Shape
from common.python.processes.messages import Observed
from common.python.project import PROJECT_ROOT
from common.python.prove.proofs import Seen, nothing, prove
from common.python.prove.triton import read_cubins
from common.python.session.planning import claims_of, uses_triton
from common.python.session.session import BUILD_CACHE
from tests.pairs.tree import Side

NOT_RUN = "nobody ran it"
Compile = Callable[[Side, Shape, tuple[int, int]], Observed]


@dataclass(frozen=True)
class Claims:
    """The claims of a pair by side, as the harness reads them, and the evidence that machine code gives, by side and architecture."""

    by_side: Mapping[str, tuple[Claim, ...]]
    evidence: Mapping[str, Mapping[str, Seen]]

    def wrong(self) -> Iterator[str]:
        """A sentence for each claim that machine code refutes, or should settle and does not."""
        if not self.by_side["optimized"] or not any(claim.separates for claim in self.by_side["optimized"]):
            yield "the optimized side proves nothing"
        for side, claims in self.by_side.items():
            for claim in claims:
                yield from self._wrong(side, claim)

    def _wrong(self, side: str, claim: Claim) -> Iterator[str]:
        proof = prove(claim, side, self.evidence)
        settled = claim.measure.kind in (INSTRUCTIONS, *IN_CODE) and self._has_code(side)
        if proof.state == "failed" or (proof.state == "unchecked" and settled and self._has_code("baseline")):
            yield f"{side}: `{claim.text}` is {proof.state}: {proof.detail}"
        elif proof.state == "unchecked" and settled and not claim.relative:
            # Of PyTorch's kernels nobody can say what they do not contain, so here it must hold, and a GPU separates the sides.
            held = prove(replace(claim, separates=False), side, self.evidence)
            if held.state != "proven":
                yield f"{side}: `{claim.text}` is {held.state}: {held.detail}"
        elif proof.state == "proven" and claim.separates:
            of_baseline = prove(claim, side, {**self.evidence, side: self.evidence["baseline"]})
            if of_baseline.state == "proven":
                yield f"{side}: `{claim.text}` holds in the baseline too: {of_baseline.detail}"

    def _has_code(self, side: str) -> bool:
        return any(seen.kernels for seen in self.evidence[side].values())


def read_pair(pair: Pair, compile_ahead: Compile, root: Path = PROJECT_ROOT) -> Claims:
    """The claims of `pair`, which lies in `root`, and their evidence. Raises BenchmarkError and SideFailure."""
    directives = {name: read_directives(file) for name, file in pair.sides.items()}
    needs = read_directives(pair.workload).needs
    evidence = {name: _seen(Side(pair, name), needs, directives[name], compile_ahead, root) for name in pair.sides}
    return Claims(claims_of(pair, directives), evidence)


def _seen(side: Side, needs: tuple[str, ...], directives: Directives, compile_ahead: Compile, root: Path) -> Mapping[str, Seen]:
    needs = (*needs, *directives.needs)
    if side.file.suffix == ".cu":
        built = build(side.file, architectures_for(needs, None), flags=directives.nvcc, cache=BUILD_CACHE, root=root)
        return _by_architecture(read_code(built.library, built.log))
    if cubins := cubins_of(side.file):
        return _by_architecture(read_cubins(map(str, cubins)))
    if not uses_triton(side.file):
        return nothing("what PyTorch launches is seen on a GPU")
    shape = next(iter(load_workload(side.pair.workload).timed_shapes.values()))
    suitable = [capability for capability in SUPPORTED if not unmet_capability(needs, capability)]
    return {architectures_for((), each)[0]: _ahead(compile_ahead(side, shape, each)) for each in suitable}


def _by_architecture(kernels: tuple[Kernel, ...]) -> Mapping[str, Seen]:
    names = dict.fromkeys(kernel.architecture for kernel in kernels)
    return {name: Seen(tuple(kernel for kernel in kernels if kernel.architecture == name), hidden=NOT_RUN) for name in names}


def _ahead(observed: Observed) -> Seen:
    return Seen(read_cubins(observed.cubins), tuple(observed.launches), hidden=observed.missed, no_code=observed.missed)
