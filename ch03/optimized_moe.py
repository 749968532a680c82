"""Optimized: each pod has CPUs of its own, and a thread per CPU."""
# guess: 5x, of four pods: their threads wait by spinning, for threads that have no CPU to run on, and take the CPUs that those need
# reason: a matrix product ends with its slowest thread, and with four threads per CPU that one waits for several time slices
# allows: processes

import os

from shared_pods import launched


def prepare(up, down, x, chosen, gates, pods, tokens, hidden, width, experts, top):
    shape = {"pods": pods, "tokens": tokens, "hidden": hidden, "width": width, "experts": experts, "top": top}
    inputs = {"up": up, "down": down, "x": x, "chosen": chosen, "gates": gates}
    cpus = sorted(os.sched_getaffinity(0))
    ends = [max(1, len(cpus) * (pod + 1) // pods) for pod in range(pods)]
    return launched(inputs, shape, [cpus[min(len(cpus) * pod // pods, end - 1) : end] for pod, end in enumerate(ends)])
