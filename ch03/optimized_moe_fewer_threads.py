"""Optimized: all CPUs for each pod, and a quarter of the threads."""
# predicts: fewer_threads = 0.2 x baseline  (the whole guess of the pair: as many threads as CPUs, so none waits for a time slice)
# allows: processes

import os

from shared_pods import launched


def prepare(up, down, x, chosen, gates, pods, tokens, hidden, width, experts, top):
    shape = {"pods": pods, "tokens": tokens, "hidden": hidden, "width": width, "experts": experts, "top": top}
    inputs = {"up": up, "down": down, "x": x, "chosen": chosen, "gates": gates}
    cpus = os.sched_getaffinity(0)
    return launched(inputs, shape, [cpus] * pods, threads=max(1, len(cpus) // pods))
