"""Library: weights as fp16 in memory, 3 bytes of traffic each, then cuBLAS's product and a pass to scale it."""


def prepare(w, scale, x):
    def step():
        return (w.to(x.dtype) @ x.T).mul_(scale[:, None])

    return step
