"""Optimized: GPTQ: later columns make up for the errors of earlier ones."""
# predicts: baseline error 0.1 = 5.2 / 15 / 12**0.5    (128 normal weights span 5.2 deviations, cut into 15 steps)
# predicts: optimized error 0.0553 = 5.2 / 15 / 12**0.5 * (2.72 / 8.90)**0.5    (geometric to arithmetic mean of the spectrum's 1 / i)
# predicts: baseline 16.7 us = (0.5 + 3 / 128) * k * rows / dram_read + 2e-6 on h100    (packed weights, and one launch)
# predicts: optimized 16.7 us = (0.5 + 3 / 128) * k * rows / dram_read + 2e-6 on h100    (the same kernel on other codes)

from shared_byte_lm import GROUP as BYTE_LM_GROUP
from shared_byte_lm import find
from shared_gptq import gptq
from shared_int4 import restored
from shared_int4_gemv import linear


def prepare(x, weight, samples, sequences):
    find("nll", sequences, x.device, lambda w, seen: restored(gptq(w, seen, BYTE_LM_GROUP)))
    multiply = linear(gptq(weight, samples))
    return lambda: multiply(x)
