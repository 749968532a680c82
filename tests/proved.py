"""What a pair of CUDA sides proves by its machine code: every claim of a side, as the harness judges it, without a GPU."""

from common.python.build.sass import read_code
from common.python.pairs.claims import read_claims
from common.python.pairs.directives import read_directives
from common.python.prove.proofs import Seen, prove
from tests.cuda_sides import built

HIDDEN = "nobody ran it"


def states(optimized, baseline, architecture, folder):
    """Claim and state (proven, failed, unchecked) of the optimized side's claims against `baseline`, both paths."""
    evidence = {}
    for half, side in (("baseline", baseline), ("optimized", optimized)):
        library = built(side, folder, architecture)
        evidence[half] = {architecture: Seen(kernels=read_code(library.library, library.log), hidden=HIDDEN)}
    claims = read_claims(optimized, read_directives(optimized))
    return {claim.text: prove(claim, "optimized", evidence).state for claim in claims}


def unexpected(optimized, baseline, architecture, folder):
    """What is judged otherwise than it must be, by side and claim: all is proven, but for what a side `proves:` against itself."""
    separates = read_directives(optimized).proves
    assert separates, f"{optimized.name} proves nothing"
    cases = {
        "optimized": (optimized, baseline, {}),
        "optimized against itself": (optimized, optimized, dict.fromkeys(separates, "failed")),
        "baseline": (baseline, baseline, {}),
    }
    return {
        (name, claim): state
        for name, (side, other, wanted) in cases.items()
        for claim, state in states(side, other, architecture, folder).items()
        if state != wanted.get(claim, "proven")
    }
