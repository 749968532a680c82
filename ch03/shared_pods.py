"""A node with pods of a mixture of experts: processes that have the weights in common, each on CPUs that its launcher names."""

import os
import subprocess
import sys
from pathlib import Path

import torch
from shared_pod import shared

START = "import os; os.sched_setaffinity(0, {cpus}); from shared_pod import serve; serve({memory}, {pod}, {orders}, {done}, {shape})"
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")  # of whichever library NumPy was built with
# Between two products threads sleep. By default OpenBLAS's spin for some 20 ms, on CPUs that other pods want.
ASLEEP = {"OPENBLAS_THREAD_TIMEOUT": "4", "OMP_WAIT_POLICY": "passive"}


def launched(inputs, shape, cpu_sets, threads=None):
    """Start a pod on each set of CPUs, and yield a step that has all of them serve their tokens at the same time.

    A pod has a thread per CPU of its set, or `threads`.
    """
    memory = os.memfd_create("experts")
    arrays = shared(memory, **shape)
    arrays["up"][:], arrays["down"][:] = inputs["up"].numpy(), inputs["down"].numpy()
    pods = [pod(memory, number, cpus, threads or len(cpus), shape) for number, cpus in enumerate(cpu_sets)]
    live = [(arrays[name], inputs[name].numpy()) for name in ("x", "chosen", "gates")]
    y = torch.from_numpy(arrays["y"])

    def step():
        for array, values in live:
            array[:] = values
        for _, orders, _ in pods:
            os.write(orders, b"?")
        for process, _, done in pods:
            if not os.read(done, 1):
                raise OSError(f"a pod ended with {process.wait()}; expected it to serve")
        return y

    yield step
    for process, orders, done in pods:
        os.close(orders)
        process.wait()
        os.close(done)
    os.close(memory)


def pod(memory, number, cpus, threads, shape):
    """A process that serves on `cpus` with as many `threads`, the pipe of its orders, and that of its answers."""
    (read, orders), (done, write) = os.pipe(), os.pipe()
    text = START.format(cpus=set(cpus), memory=memory, pod=number, orders=read, done=write, shape=shape)
    command, folder = [sys.executable, "-c", text], Path(__file__).parent
    environment = os.environ | ASLEEP | dict.fromkeys(THREADS, str(threads))  # the default is a thread per CPU
    process = subprocess.Popen(command, cwd=folder, env=environment, pass_fds=(memory, read, write))
    os.close(read)
    os.close(write)
    return process, orders, done
