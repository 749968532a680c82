"""Compile the CuTe DSL or the cuTile kernel on a machine without a GPU: `python compile_ahead.py cute_dsl` or `cutile`.

A cubin for each architecture is left beside the side of that language, and entered in cubins.json with its digest, that of the
kernel's source, its kernel's name, and the compiler. Commit them together: the side refuses a cubin that is not as entered.
"""

import argparse
import contextlib
import hashlib
import importlib.metadata
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ENTRIES = HERE / "cubins.json"
SIDE = "optimized_one_kernel_many_languages"
ARCHITECTURES = ("sm_90a", "sm_100a")
# By language: the module and the distribution of its compiler, and how to install that.
COMPILERS = {
    "cute_dsl": ("cutlass.cute", "nvidia-cutlass-dsl", "pip install 'nvidia-cutlass-dsl[cu13]==4.8.1'"),
    "cutile": (
        "cuda.tile",
        "cuda-tile",
        "pip install cuda-tile==1.7.0 nvidia-cuda-{tileiras,nvcc,crt,runtime}==13.4.92 nvidia-nvvm==13.4.92",
    ),
}


def missing(language):
    """What this Python lacks to compile the language, in one sentence; empty if nothing."""
    module, distribution, install = COMPILERS[language]
    with contextlib.suppress(ModuleNotFoundError):  # of the package around it
        if importlib.util.find_spec(module):
            return ""
    return f"the Python package {distribution} is not installed; expected it ({install})"


def compiled(language, architecture, folder):
    """The machine code of the kernel; what a compiler leaves behind lies in `folder`."""
    with contextlib.chdir(folder):
        if language == "cute_dsl":
            import kernel_cute_dsl

            return kernel_cute_dsl.cubin(architecture, folder)
        import kernel_cutile

        name = architecture.rstrip("a")  # tileiras takes sm_90 for what others call sm_90a
        Path("kernel.tileir").write_bytes(kernel_cutile.intermediate(name))
        # By hand, since export_kernel asks tileiras for line numbers: four times the bytes.
        subprocess.run([assembler(), f"--gpu-name={name}", "-O3", "kernel.tileir", "-o", "kernel.cubin"], check=True)
        return Path("kernel.cubin").read_bytes()


def assembler():
    """The tileiras of this Python's packages, or else of the machine. Raises SystemExit."""
    packages = Path(sysconfig.get_path("purelib"), "nvidia")
    found = [*sorted(map(str, packages.glob("*/bin/tileiras"))), *filter(None, [shutil.which("tileiras")])]
    return found[0] if found else sys.exit("compile_ahead.py: found no tileiras; expected it (pip install nvidia-cuda-tileiras)")


def kernel_of(code):
    """The name of the one kernel in a cubin, after which the section of its instructions is named."""
    (name,) = set(re.findall(rb"\0\.text\.(\w*quantized_norm\w*)\0", code))
    return name.decode()


def entry(language, code):
    """What cubins.json says of a cubin."""
    source = HERE / f"kernel_{language}.py"
    distribution = COMPILERS[language][1]
    return {
        "sha256": hashlib.sha256(code).hexdigest(),
        "source": {source.name: hashlib.sha256(source.read_bytes()).hexdigest()},
        "kernel": kernel_of(code),
        "compiler": f"{distribution} {importlib.metadata.version(distribution)}",
    }


def main(arguments=None):
    """Compile for every architecture, and enter what was made."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("language", choices=sorted(COMPILERS))
    language = parser.parse_args(arguments).language
    if reason := missing(language):
        sys.exit(f"compile_ahead.py: {reason}")
    entries = json.loads(ENTRIES.read_text()) if ENTRIES.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        codes = {architecture: compiled(language, architecture, folder) for architecture in ARCHITECTURES}
    for architecture, code in codes.items():
        cubin = HERE / f"{SIDE}_{language}.{architecture}.cubin"
        cubin.write_bytes(code)
        entries[cubin.name] = entry(language, code)
        print(f"{cubin.name}: {len(code)} bytes")
    ENTRIES.write_text(json.dumps(entries, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
