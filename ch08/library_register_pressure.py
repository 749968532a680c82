"""Library: cuBLAS, as PyTorch's matrix product calls it, in IEEE FP32."""


def prepare(x, g):
    def step():
        return x.T @ g

    return step
