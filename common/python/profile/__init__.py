"""nsys, ncu and compute-sanitizer on a row, and what their figures explain."""
