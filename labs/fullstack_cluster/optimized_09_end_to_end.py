"""Chapter 20's techniques: graphs, streams, one cache, chunks."""
# predicts: baseline 15.9 ms = 3.2e-3 + 2.11e-3 + 2.85e-3 + 7.75e-3 on h100  (what chapter 20 predicts for its four baselines)
# predicts: optimized 6.52 ms = 1.06e-3 + 0.703e-3 + 1.45e-3 + 3.31e-3 on h100  (and for its four optimized sides)
# proves: launches < 0.5 x baseline
# proves: overlap HtoD DtoH >= 0.5
# proves: kernels in CatArrayBatchedCopy < 0.6 x baseline
#
# A training step of four layers makes 20 concatenations on either side, for rotary embeddings and gradients. The baseline's cache adds 16.

from shared_chapter20 import job


def prepare(**given):
    return job("optimized", given)
