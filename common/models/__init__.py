"""Models as functions over a flat dict of tensors: what sides and workloads import, and the harness never."""
