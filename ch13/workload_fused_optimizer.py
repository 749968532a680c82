"""A step of AdamW on the FP32 parameters of a small transformer, a list of tensors of many sizes, late in training."""

from common import Workload

RATE, DECAY, EPSILON = 1e-3, 1e-2, 1e-8  # AdamW's defaults in PyTorch
KEPT, KEPT_SQUARES = 0.9, 0.999


def sizes(width, layers, vocabulary, context):
    """Embeddings, the weights and biases of each block, and the last norm."""
    norm = [(width,), (width,)]
    attention = [(3 * width, width), (3 * width,), (width, width), (width,)]
    network = [(4 * width, width), (4 * width,), (width, 4 * width), (width,)]
    return [(vocabulary, width), (context, width), *[*norm, *attention, *norm, *network] * layers, *norm]


def inputs(rand, width, layers, vocabulary, context):
    """AdamW divides by the size of the gradients, so a size of 1 is as good as any."""
    shapes = sizes(width, layers, vocabulary, context)
    return {
        "params": [rand.normal(*shape, std=0.02) for shape in shapes],
        "grads": [rand.normal(*shape) for shape in shapes],
        "exp_avg": [rand.normal(*shape, std=0.3) for shape in shapes],
        "exp_avg_sq": [rand.uniform(*shape, low=0.5, high=1.5) for shape in shapes],
    }


def reference(params, grads, exp_avg, exp_avg_sq):
    """Loshchilov and Hutter, arXiv:1711.05101, algorithm 2, where both bias corrections are 1."""
    for p, g, m, v in zip(params, grads, exp_avg, exp_avg_sq, strict=True):
        p.mul_(1 - RATE * DECAY)
        m.mul_(KEPT).add_(g, alpha=1 - KEPT)
        v.mul_(KEPT_SQUARES).addcmul_(g, g, value=1 - KEPT_SQUARES)
        p.addcdiv_(m, v.sqrt() + EPSILON, value=-RATE)


def work(width, layers, vocabulary, context):
    """A step must read parameter, gradient and both averages, and write all but the gradient."""
    count = (vocabulary + context) * width + layers * (12 * width * width + 13 * width) + 2 * width
    return {"dram_read": 16 * count, "dram_write": 12 * count}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda width, layers, vocabulary, context: {},  # the state is the result
    reference=reference,
    time_at={"width": 1024, "layers": 4, "vocabulary": 8192, "context": 1024},  # 52 tensors, 60 million parameters: 1.7 GB a pass
    cpu_at={"width": 32, "layers": 2, "vocabulary": 512, "context": 64},
    check_at=(
        {"width": 8, "layers": 1, "vocabulary": 65, "context": 3},
        {"width": 24, "layers": 1, "vocabulary": 131, "context": 64},
        {"width": 64, "layers": 1, "vocabulary": 1, "context": 7},
    ),
    work=work,
    rtol=3e-6,
    atol=4e-7,  # of 373 million elements of a larger state on an H100 the worst is off by 2.3e-7
    in_place=("params", "exp_avg", "exp_avg_sq"),
    state="evolves",
    steps=3,
)
