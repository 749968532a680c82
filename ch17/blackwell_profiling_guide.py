"""A guide to profiling Blackwell with this project: a question a step, the command that answers it, and what this machine lacks for it.

./setup.sh python ch17/blackwell_profiling_guide.py [--step 4]

Nobody has measured these steps on a Blackwell GPU. What a pair needs is read from its files, and this machine is asked whether it has
it. Where it has not, `verify` still builds a CUDA pair and proves its instructions, and another pair shows the same idea.
"""

from dataclasses import dataclass

from common.python.command import Arguments, exit_with
from common.python.errors import ExitCode
from common.python.machine.description import describe_machine, find_tool, unmet
from common.python.pairs.directives import read_directives
from common.python.pairs.discovery import discover
from common.python.project import PROJECT_ROOT

RUN = "./setup.sh benchmark_cli run --targets"


@dataclass(frozen=True)
class Step:
    """A question, the pair that it is asked of, the profiler's level and tool, and what to look at in the report."""

    question: str
    target: str
    level: str
    tool: str
    look: str


STEPS = (
    Step(
        "Does the host keep the GPU busy?",
        "ch12:cuda_graphs",
        "minimal",
        "nsys",
        "gaps of a step: one over half of its span is launch-bound",
    ),
    Step(
        "Which roof binds a kernel?",
        "ch07:transpose",
        "roofline",
        "ncu",
        "DRAM, L2 and SM in percent, beside this machine's own ridge point",
    ),
    Step(
        "Do loads of 32 bytes help?",
        "ch07:vectorized_copy_32b",
        "roofline",
        "ncu",
        "the claim ld_256bit; bytes in flight bind, so DRAM in percent grows",
    ),
    Step(
        "Do the tensor cores of Blackwell work all the time?",
        "ch10:tcgen05",
        "roofline",
        "ncu",
        "the claims tcgen05_mma_f16_tf32 and tcgen05_ld; tensor pipe in percent",
    ),
    Step(
        "Is the epilogue behind the products, in tensor memory?",
        "ch10:tmem_triple_overlap",
        "deep_dive",
        "ncu",
        "tensor pipe in percent; what stalls are left",
    ),
    Step(
        "Does FP4 reach the tensor cores?", "ch18:nvfp4_inference_blackwell", "roofline", "ncu", "the claims; DRAM traffic of the weights"
    ),
    Step(
        "Does a kernel read the Grace CPU's memory directly?",
        "ch02:grace_coherent_memory_c2c",
        "minimal",
        "nsys",
        "copies of a step: none are left",
    ),
    Step(
        "Does the decompression engine work, and not the SMs?",
        "ch05:gpu_input_engine",
        "minimal",
        "nsys",
        "kernels of a step: those of decompression are gone",
    ),
)


def lacking(target, tool, machine, pairs):
    """What this machine lacks for a step, and the pair to try instead; "" twice where it has all."""
    pair = pairs[target]
    directives = [read_directives(path) for path in (pair.workload, *pair.sides.values())]
    reasons = [unmet(tuple(need for each in directives for need in each.needs), machine, PROJECT_ROOT)]
    reasons += ["no CUDA device"] * (not reasons[0] and not machine.gpus)
    reasons += [f"no {tool}"] * (find_tool(tool) is None)
    instead = next((each.instead for each in directives if each.instead), "")
    return "; ".join(filter(None, reasons)), instead


def tell(number, step, machine, pairs):
    """Print a step; whether this machine can do it."""
    missing, instead = lacking(step.target, step.tool, machine, pairs)
    print(f"{number}. {step.question}")
    print(f"   run      {RUN} {step.target} --profile={step.level}")
    print(f"   look at  {step.look}")
    print(f"   here     {f'missing: {missing}' if missing else 'ready'}{f'; try {instead}' * bool(missing and instead)}")
    return not missing


def main(arguments=None):
    """Print the guide, or a step of it; 5 where this machine can do none of what was asked for."""
    parser = Arguments(description=__doc__.splitlines()[0])
    parser.add_argument("--step", type=int, choices=range(1, len(STEPS) + 1), help="this one alone")
    chosen = parser.parse_args(arguments)
    machine, pairs = describe_machine(PROJECT_ROOT), {pair.target: pair for pair in discover(PROJECT_ROOT).pairs}
    steps = [(number, step) for number, step in enumerate(STEPS, start=1) if chosen.step in (None, number)]
    here = ", ".join(gpu.name for gpu in machine.gpus) or "a machine without a GPU"
    print(f"Profiling Blackwell, on {here}. Nobody has measured these steps on a Blackwell GPU.")
    able = [tell(number, step, machine, pairs) for number, step in steps]
    print(f"{sum(able)} of {len(able)} steps can be done here; ch17/comprehensive_profiling_toolkit.py tools says what the tools are for")
    return int(ExitCode.GOOD if any(able) else ExitCode.NOTHING_MEASURED)


if __name__ == "__main__":
    exit_with(main)
