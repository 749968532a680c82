"""What a pair of chapter 10 proves by its machine code: every claim of a side, as the harness judges it, without a GPU."""

from common.python.claims import read_claims
from common.python.directives import read_directives
from common.python.disassembly import read_code
from common.python.evidence import Seen, prove
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
