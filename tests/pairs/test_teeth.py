"""Every workload's tolerances refuse wrong answers: zeros, a NaN, a shuffle, 1/64 of an input dropped, lower precision, (1 + 8 rtol).

A serving workload has a bound of another kind: that it refuses wrong contexts is tried where its sides are, in test_right_on_cpu.py.
"""

import pytest

from common.python.child.sides.loader import load_workload
from common.python.machine.needs import unmet_packages
from common.python.pairs.directives import read_directives
from tests.pairs.planted import WORKLOAD, planted
from tests.pairs.tree import pairs_of
from tests.pairs.wrong_answers import Options, Untestable, taken

# What the workloads do not tell, by target.
STAMPED = Options(small={("stamps", 0): "the kernels write the clock there, and no answer depends on it"})
CHOOSE = "codes of 4 bits are chosen by them, and the answer is not made of them"
CALIBRATION = {("samples", axis): CHOOSE for axis in (0, 1)}
CACHED = {
    (f"caches.{layer}.{each}", axis): "a token among many, or an element of a score"
    for layer in (0, 1)
    for each in (0, 1)
    for axis in (2, 3)
}
MIXTURE = ("gate_up", "gate_up_bias", "down", "down_bias")
FOUR_BITS = "an answer moves less by it than by rounding weights to 4 bits"
FOUR_BITS_OF_WEIGHTS = dict.fromkeys((("x", 1), ("norm", 0), ("gate_up", 1), ("down", 1)), FOUR_BITS)
LAYERS = ("layer1_basics", "layer2_memory", "layer3_pipelining", "layer4_graphs", "layer5_compile", "ultimate_inference")
OF_SUMS = (
    *((f"weights.{layer}.{bias}", 0) for layer in (0, 1) for bias in ("q_bias", "k_bias", "v_bias", "sinks")),
    *((f"weights.{layer}.router", 1) for layer in (0, 1)),
    ("weights.1.router_bias", 0),
    *(("weights.0.o_bias", 0), ("weights.0.feed_forward_norm", 0), ("weights.1.k", 0), ("weights.1.v", 0), ("weights.1.v", 1)),
    *(("weights.1.o", 1), ("weights.1.o_bias", 0), ("packed.1.gate_up.0", 1), ("packed.1.gate_up.1", 1)),
)
OF_ONE_RANK = (("weights.0.v", 0), ("weights.1.attention_norm", 0), ("weights.1.q", 0), ("weights.1.q", 1), ("weights.1.k", 1))
GPT_OSS_LAYERS = Options(
    bits=3,  # e4m3: two layers in BF16 are off by as much as inputs of two bits less
    small=dict.fromkeys(OF_SUMS, "a part of 64 of a sum") | dict.fromkeys((("keys", 3), ("values", 3)), "a token in 64"),
)
NANOCHAT = {
    ("weights.embedding", 0): "a step reads a row a token",
    ("keys", 3): "a token among many",
    ("values", 3): "a token among many",
    **{(f"weights.blocks.{block}.{name}", axis): "of the newest token alone" for block in (0, 1) for name in "kv" for axis in (0, 1)},
}
NANOCHAT_STREAMS = {
    ("keys", 3): "a token among many",
    ("values", 3): "a token among many",
    **{
        (f"weights.blocks.{block}.{name}", axis): "of the newest token, and of a prompt whose keys and values attention averages"
        for block, name in ((0, "k"), (1, "k"), (1, "v"))
        for axis in (0, 1)
    },
}
NANOCHAT_FP8 = NANOCHAT | {
    (f"weights.blocks.{block}.{name}", axis): "one of 64 parts of a sum in e4m3"
    for block in (0, 1)
    for name in ("q", "o", "gate_up", "down")
    for axis in (0, 1)
}
NANOCHAT_FP8 |= dict.fromkeys((("weights.embedding", 1), ("keys", 4)), "one of 64 parts of a sum in e4m3")
FEW_OWN_KEYS = {("weights.layers.1.k", 0): "most keys are of the history, and few of the messages that this weight makes"}
BYTE_LM = {
    (f"weights.layers.{layer}.{name}", axis): "a 64th of a trained layer moves few logits by more than rounding does"
    for layer in range(4)
    for name in ("q", "k", "v", "o", "gate_up", "down", "attention_norm", "feed_forward_norm")
    for axis in ((0,) if name.endswith("norm") else (0, 1))
} | {("weights.norm", 0): "a 64th of the last norm moves few logits by more than e4m3 does"}
TRAINED = dict.fromkeys(
    (
        *((f"start.{name.removeprefix('weights.')}", axis) for name, axis in BYTE_LM),
        *(("start.embedding", axis) for axis in (0, 1)),
        *(("texts", axis) for axis in (0, 1, 2)),
        ("signs", 0),
    ),
    "sides train from it while they prepare, and no answer depends on it",
)
STREAMS = Options(
    small={(name, 0): "bytes that were zeroed, or looked for elsewhere, are no stream" for name in ("packed", "starts", "sizes")}
)
MXFP8 = Options(  # e2m1: both sides declare e4m3
    bits=1,
    small=dict.fromkeys((("x", 1), ("gate_up", 1), ("gate_up", 2), ("down", 2)), "a 64th of a sum is less than two products in e4m3 round"),
)
OPTIONS = {
    "ch02:grace_coherent_memory": Options(small={("crossing", 0): "a side writes there what it measured, and no answer depends on it"}),
    "ch03:huge_pages": Options(small={("faults", 0): "a side writes there how often it entered the kernel, and no answer depends on it"}),
    "ch04:nccl": Options(bits=4),  # each rank rounds its part to BF16, then the sum is rounded, then the residual is added
    "ch04:no_overlap": Options(bits=3),  # e4m3: gradients in BF16 are off by as much as inputs of a bit less
    "ch04:nvl72": Options(small={("crossed", 0): "the ranks count there what they send, and no answer depends on it"}),
    "ch04:nvshmem_pipeline_parallel": Options(bits=4),  # eight stages round their stream to BF16 one after the other
    "ch04:symmetric_memory": Options(bits=4),  # sums of eight ranks in BF16 are rounded seven times
    "ch05:gpu_input": STREAMS,
    "ch05:gpu_input_engine": STREAMS,
    "ch10:flash_attention": Options(bits=3),  # e4m3: scores of BF16 are off by as much as inputs of a bit less
    "ch11:green_contexts": STAMPED,
    "ch11:stream_priority": STAMPED,
    "ch13:expert_parallelism": Options(bits=5),  # gated activations are rounded to BF16, and a few are large
    "ch13:fp8_per_channel": Options(bits=1),  # e2m1: both sides declare e4m3, whatever their inputs have
    "ch13:fp8_static": Options(
        bits=1, small={("samples", axis): "the scales come from there, and an answer hardly depends on them" for axis in (0, 1)}
    ),
    "ch13:fsdp2_fp8": Options(bits=1),  # e2m1: the optimized side sends e4m3, and sums of eight in BF16 are rounded seven times
    "ch13:memory_profiling": Options(bits=3),  # e4m3: gradients in BF16 are off by as much as inputs of a bit less
    "ch13:tp_fsdp": Options(bits=3),  # e4m3: and so are they where ranks add them up in BF16
    "ch14:max_autotune": Options(bits=3),  # e4m3: four eager layers in BF16 are off by as much as inputs of two bits less
    "ch14:model_eager": Options(bits=3),  # e4m3: and so are the operators of twelve decoder layers
    "ch14:regional_compile": Options(bits=3),
    "ch14:torch_compile_large": Options(bits=3),
    "ch15:load_balancing": Options(small={("load", 0): "both sides write there how busy ranks are, and no answer depends on it"}),
    "ch18:batch_invariant": Options(
        small={("same", 0): "a side writes there how many logits kept their bits, and no answer depends on it"}
    ),
    "ch18:cudagraph_bucketing": Options(small={("weights.embedding", 0): "no step has a token of the rows that are dropped"}),
    "ch18:flashmla": Options(bits=3),  # e4m3: queries, shares and averages are rounded to BF16, one after the other
    "ch18:streams": Options(
        bits=3, small={("weights.embedding", 0): "few tokens are of the rows that are dropped"}
    ),  # e4m3: layers in BF16
    "labs/async_input_pipeline:async_input_pipeline": Options(bits=4),  # features and three hidden layers are rounded to BF16 in turn
    "labs/one_kernel_many_languages:one_kernel_many_languages": Options(bits=2),  # answers are rounded to e4m3's three
    "labs/kv_cache_compression:kv_cache_nvfp4": Options(
        bits=0,  # powers of two: the optimized side's e2m1 has one bit more, within a block
        small=dict.fromkeys((("q", 2), ("k", 2), ("keys", 3)), "a 64th of a head's elements is less than NVFP4 rounds"),
    ),
    # Powers of two: with one bit more, weights are about as exact as codes of 4 bits.
    "ch16:awq": Options(
        bits=0,
        small=CALIBRATION
        | {("inner_samples", axis): CHOOSE for axis in (0, 1)}
        | dict.fromkeys((("x", 1), ("h", 1), ("gate_up", 1), ("down", 1)), "a 64th of a sum, as much as rounding weights to 4 bits"),
    ),
    "ch16:gptq": Options(bits=0, small=CALIBRATION | dict.fromkeys((("x", 1), ("weight", 1)), FOUR_BITS)),
    "ch16:gpt_oss_120b_inference": GPT_OSS_LAYERS,
    "ch16:inference_optimizations": Options(
        bits=1, small=CACHED | dict.fromkeys((("weights.1.qkv", 0), ("weights.1.down", 1)), "one of 64 parts of a sum in e4m3")
    ),
    "ch16:piece_graphs": Options(bits=3, small=CACHED),
    "labs/fast_nanochat:fast_nanochat": Options(bits=3, small=NANOCHAT),  # e4m3: twenty layers in BF16 are off by more than two
    "labs/distributed_training:distributed_training": Options(bits=1),  # e2m1: the optimized side sends gradients in e4m3
    "labs/fast_nanochat:fast_nanochat_fp8": Options(bits=1, small=NANOCHAT_FP8),
    "labs/fast_nanochat:fast_nanochat_streams": Options(bits=3, small=NANOCHAT_STREAMS),  # as fast_nanochat
    "labs/fast_nanochat:fast_nanochat_ultimate": Options(bits=1, small=NANOCHAT_FP8),
    **dict.fromkeys((f"labs/ultimate_moe_inference:{name}" for name in LAYERS), GPT_OSS_LAYERS),
    "labs/ultimate_moe_inference:ultimate_inference_ranks": Options(
        bits=3, small=GPT_OSS_LAYERS.small | dict.fromkeys(OF_ONE_RANK, "a part of 64 of what one of two ranks has")
    ),
    "ch16:paged_attention_blackwell": Options(small={("k", 2): "one element of a key moves a score less than rounding all to e4m3 does"}),
    "ch20:autotuning": Options(small={("used", 0): "a kernel writes there what it was launched with, and no answer depends on it"}),
    "ch20:pipeline_sequential": Options(bits=4),  # every layer rounds to BF16 three times a token, and the next starts from that
    "ch17:pipeline_parallel_inference": Options(bits=3),  # e4m3: layers in BF16 are off by as much as inputs of a bit less
    "ch17:prefill_decode_disagg_multigpu": Options(bits=3),
    "ch17:prefill_decode_prefetch": Options(bits=3),
    "ch16:inference_serving": Options(bits=3),  # e4m3: decode steps in BF16 are off by as much as inputs of two bits less
    "ch16:symmetric_memory_inference": Options(bits=3),
    "ch18:moe_inference": Options(
        bits=4,  # an answer in BF16 is off by as much as inputs of three bits less
        small={(name, 0): "the first of 8 experts, which the only token of that shape does not take" for name in MIXTURE},
    ),
    "ch18:nvfp4_inference": Options(bits=0, small=FOUR_BITS_OF_WEIGHTS),  # powers of two: the optimized side declares e2m1
    "ch18:nvfp4_inference_blackwell": Options(bits=0, small=FOUR_BITS_OF_WEIGHTS | {("gate_up", 0): "a 64th of all gates, too"}),
    "ch19:dynamic_quantized_cache": Options(
        bits=0,  # powers of two: the optimized side declares 4 bits
        small=dict.fromkeys((("q", 2), ("k", 2), ("keys", 3)), "a 64th of a head's elements is less than 4 bits round")
        | {(name, 2): "few queries look for one of the tokens that are dropped" for name in ("keys", "values")},
    ),
    # Texts are those of the Python that runs, some of which tell a 64th of an embedding and others do not.
    "ch19:dynamic_precision_switching": Options(
        bits=1,  # e2m1: the optimized side declares e4m3
        small=BYTE_LM | {("weights.embedding", 1): "a 64th of an embedding moves few logits by more than e4m3 does"},
    ),
    **dict.fromkeys(("ch19:mxfp8_moe", "ch19:mxfp8_moe_blackwell"), MXFP8),
    "ch19:nvfp4_training": Options(  # powers of two: both sides declare e2m1
        bits=0,
        small={(name, axis): "a 64th of a sum is less than 4 bits round" for name in ("x", "w", "dy") for axis in (0, 1)} | TRAINED,
    ),
    "ch19:kv_offload": Options(small=FEW_OWN_KEYS),
    "ch19:kv_prefetch_overlap": Options(small=FEW_OWN_KEYS),
    "ch19:memory_double_buffering": Options(bits=4),  # each layer rounds to BF16 five times, and the next starts from that
    "ch19:token_precision_switching": Options(bits=3),  # e4m3: INT8 of the optimized side is off by as much as inputs of two bits more
    "ch19:adaptive_parallelism": Options(bits=4),  # each rank rounds its part of a sum to BF16, then the sum is rounded
    "ch19:fp8_training": Options(  # e2m1: the optimized side declares e4m3
        bits=1,
        small={
            (f"weights.0.{name}", axis): "FP8 is off by as much as they add"
            for name, axis in (("v", 1), ("gate", 1), ("up", 1), ("down", 0))
        },
    ),
}

# Shapes with a longer reduction than any check shape has, by target: a tolerance might hide there what it shows at those.
FP8 = Options(bits=3)  # e4m3
SQUARE = {"m": 64, "n": 64, "k": 512}
DEEP = {
    "ch09:cutlass_gemm": ({"m": 32, "n": 32, "k": 8192}, FP8),
    "ch09:inline_ptx": ({"n": 2100, "m": 2048}, Options()),
    "ch09:tensor_core": ({"m": 32, "n": 32, "k": 4096}, FP8),
    "ch09:tiling": ({"m": 32, "n": 32, "k": 4096}, Options()),
    "ch10:cluster_group": ({"rows": 4, "cols": 20000}, Options()),
    "ch10:double_buffered_pipeline": (SQUARE, Options()),
    "ch10:dsmem_reduction": ({"rows": 8, "cols": 40000}, Options()),
    "ch10:matmul": ({**SQUARE, "clusterDim": 2}, Options()),
    "ch10:tcgen05": (SQUARE, Options()),
    "ch10:warp_spec_pingpong": (SQUARE, Options()),
    "ch10:wgmma_triple_overlap": (SQUARE, Options()),
}

WORKLOADS = {pair.workload: f"{pair.directory}:{pair.workload.stem.removeprefix('workload_')}" for pair in pairs_of()}


def tolerances():
    """A parameter a tolerance: the one that both sides share, and the optimized side's where it changes the precision."""
    compared = {path: target for path, target in WORKLOADS.items() if "serving=" not in path.read_text()}
    shared = [pytest.param(path, "baseline", id=target) for path, target in compared.items()]
    changed = [(path, target) for path, target in compared.items() if "changes=" in path.read_text()]
    return shared + [pytest.param(path, "optimized", id=f"{target}-optimized") for path, target in changed]


@pytest.mark.parametrize(("workload", "side"), tolerances())
def test_tolerance_refuses_wrong_answers(workload, side):
    if reason := unmet_packages(read_directives(workload).needs):
        pytest.skip(f"{WORKLOADS[workload]} {reason}")
    loaded = load_workload(workload)
    found = taken(loaded, side, OPTIONS.get(WORKLOADS[workload], Options()))
    assert not found, (
        f"{loaded.tolerance(side)} takes {', '.join(found)} at every check shape; expected a tighter one, or an entry in OPTIONS"
    )


@pytest.mark.parametrize("target", DEEP)
def test_tolerance_refuses_wrong_answers_of_deep_reductions(target):
    (path,) = [path for path, name in WORKLOADS.items() if name == target]
    shape, options = DEEP[target]
    assert taken(load_workload(path), "baseline", options, [shape]) == []


def test_every_option_is_of_a_workload_of_the_tree():
    assert OPTIONS.keys() | DEEP.keys() <= set(WORKLOADS.values())


def planted_workload(folder, before="", after=""):
    assert before in WORKLOAD
    return load_workload(planted(folder, workload=WORKLOAD.replace(before, after)).workload)


def test_a_tolerance_with_teeth_takes_nothing_wrong(tmp_path):
    assert taken(planted_workload(tmp_path), "baseline", Options()) == []


def test_a_tolerance_without_any_takes_all_but_a_nan(tmp_path):
    assert taken(planted_workload(tmp_path, "atol=1e-5", "atol=1e9"), "baseline", Options()) == [
        "zeros in output 0",
        "a shuffle in output 0",
        "(1 + 8 rtol) times in output 0",
        "1/64 of x along axis 0 dropped",
        "1/64 of x along axis 1 dropped",
        "inputs of 10 bits",
    ]


WITHOUT_TEETH = {
    "inputs of 10 bits": ("rtol=1e-5", "rtol=0.02"),
    "1/64 of x along axis 1 dropped": ("atol=1e-5", "atol=4.0"),
    "zeros in output 0": ("rtol=1e-5", "rtol=1.0"),
    "(1 + 8 rtol) times in output 0": ("atol=1e-5", "atol=0.1"),
    "one value off by one in output 0": ("rtol=1e-5,\n    atol=1e-5", "rtol=0.0,\n    atol=1.0"),
    "a shuffle in output 0": ("reference=lambda x: x.sum(dim=1)", "reference=lambda x: x.sum().expand(len(x)).clone()"),
    "1/64 of unused along axis 0 dropped": ("cols)}", 'cols), "unused": rand.normal(cols)}'),
}


@pytest.mark.parametrize("wrong", WITHOUT_TEETH)
def test_a_tolerance_without_teeth_is_refused(wrong, tmp_path):
    assert wrong in taken(planted_workload(tmp_path, *WITHOUT_TEETH[wrong]), "baseline", Options())


def test_integers_are_compared_exactly(tmp_path):
    before, after = "reference=lambda x: x.sum(dim=1)", "reference=lambda x: (x > 0).sum(dim=1)"
    path = planted(tmp_path, workload=WORKLOAD.replace(before, after).replace("torch.float32", "torch.int64")).workload
    assert taken(load_workload(path), "baseline", Options(bits=1)) == []  # 8 rtol of some dozens are less than one
    path.write_text(path.read_text().replace("atol=1e-5", "atol=1.0"))
    assert taken(load_workload(path), "baseline", Options()) == ["one value off by one in output 0"]


CHANGES = ("    atol=1e-5,\n", "    atol=1e-5,\n    changes=Precision(rtol=1e-2, atol=1e-2),\n")


def test_a_pair_that_cannot_be_tested_fails_with_the_option_that_is_missing(tmp_path):
    text = WORKLOAD.replace(*CHANGES).replace("import Spec", "import Precision, Spec")
    workload = load_workload(planted(tmp_path, workload=text).workload)
    with pytest.raises(Untestable, match="expected an entry with `bits`"):
        taken(workload, "optimized", Options())
    assert taken(workload, "optimized", Options(bits=3)) == []
    with pytest.raises(Untestable, match="expected inputs and axes among"):
        taken(workload, "baseline", Options(small={("z", 0): "no such input"}))


def test_an_input_that_is_less_than_the_tolerance_needs_a_reason(tmp_path):
    workload = planted_workload(tmp_path, "atol=1e-5", "atol=4.0")
    assert "1/64 of x along axis 1 dropped" not in taken(workload, "baseline", Options(small={("x", 1): "of a planted pair"}))
