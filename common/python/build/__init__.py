"""From sources to libraries: nvcc, the cache of what it built, and the machine code in it."""
