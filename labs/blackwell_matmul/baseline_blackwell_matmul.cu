// Baseline: a thread computes one element, straight from memory.
#include "ch10/baseline_matmul.cu"
