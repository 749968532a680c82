"""The lab's decode step by vLLM, where that is installed: two layers of gpt-oss-20b, eight sequences, 2048 cached tokens; else SKIPPED.

    python labs/ultimate_moe_inference/vllm_variant/decode.py [--model NAME] [--steps 128]

Weights are random, as the lab's are, so of the model only its configuration is read. The time of a step is what `steps` more tokens take,
divided by `steps`. It holds more than a step of the lab: the embedding, logits of the whole vocabulary, sampling, and vLLM's scheduler.
"""

import argparse
import importlib
import importlib.util
import statistics
import time

LAYERS = {"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"]}
REPEATS = 5


def timed(engine, prompts, sampling):
    """The median seconds in which all prompts are answered, after one call that warms up."""
    took = []
    for _ in range(REPEATS + 1):
        began = time.perf_counter()
        engine.generate(prompts, sampling, use_tqdm=False)
        took.append(time.perf_counter() - began)
    return statistics.median(took[1:])


def step_us(vllm, model, sequences, context, steps):
    """Microseconds of one decode step of all sequences."""
    longest = context + steps + 1
    engine = vllm.LLM(
        model=model, load_format="dummy", hf_overrides=LAYERS, skip_tokenizer_init=True, max_model_len=longest, max_num_seqs=sequences
    )
    prompts = [{"prompt_token_ids": [(1 + at + 31 * each) % 1000 for at in range(context)]} for each in range(sequences)]
    one, more = (
        timed(engine, prompts, vllm.SamplingParams(temperature=0.0, max_tokens=count, ignore_eos=True, detokenize=False))
        for count in (1, 1 + steps)
    )
    return (more - one) / steps * 1e6


def positive(text):
    """A flag's whole number, at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}; expected a whole number of at least 1")
    return int(text)


def main(arguments=None):
    """Print the time of a step, or SKIPPED."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="openai/gpt-oss-20b", help="a folder or a name that vLLM knows (default: %(default)s)")
    parser.add_argument("--sequences", type=positive, default=8, help="how many decode together (default: %(default)s)")
    parser.add_argument("--context", type=positive, default=2048, help="cached tokens of each (default: %(default)s)")
    parser.add_argument("--steps", type=positive, default=128, help="decode steps that are timed (default: %(default)s)")
    chosen = parser.parse_args(arguments)
    if importlib.util.find_spec("vllm") is None:
        print("SKIPPED: found no module vllm; expected it for a decode step by vLLM")
        return
    took = step_us(importlib.import_module("vllm"), chosen.model, chosen.sequences, chosen.context, chosen.steps)
    print(f"vllm: {took:.1f} µs per step, {chosen.sequences / took * 1e6:.0f} tokens per second, of 2 layers")


if __name__ == "__main__":
    main()
