// Baseline: mma.sync on tensor cores; one buffer: load, then multiply.
#include "ch10/baseline_double_buffered_pipeline.cu"
