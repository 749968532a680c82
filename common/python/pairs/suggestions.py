"""Which known names a mistaken one may have meant: by their words, by the field's other words for them, or by their spelling."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_ALSO = {
    ("tensor_core", "tensorcore", "wmma"): ("wgmma", "mma_sync", "tcgen05"),
    ("gemm", "mm"): ("matmul", "gemm"),
    ("attn",): ("attention",),
    ("tensor_memory", "tmem", "utmem"): ("tcgen05_alloc", "tcgen05_ld", "tcgen05"),
    ("umma", "blackwell", "sm100", "sm_100", "sm_100a"): ("tcgen05",),
    ("warpgroup", "hopper", "sm90", "sm_90", "sm_90a"): ("wgmma",),
    ("warp_specialization", "warp_specialized", "register_reallocation"): ("setmaxnreg",),
    ("tensor_map", "tensor_memory_accelerator", "bulk_tensor"): ("tma",),
    ("async_copy", "memcpy_async", "ldgsts"): ("cp_async", "bulk_copy"),
    ("vectorized", "vector", "float4", "wide_load"): ("ld_128bit", "st_128bit", "ld_256bit"),
    ("distributed_shared_memory",): ("dsmem", "clusters"),
    ("thread_block_cluster", "block_cluster"): ("cluster", "clusters"),
    ("atomic", "atomic_add"): ("red_global", "atom_global", "atom_shared"),
    ("shuffle", "warp_shuffle"): ("shfl",),
    ("syncthreads", "barrier"): ("bar_sync", "mbarrier"),
    ("programmatic_dependent_launch", "dependent_launch"): ("pdl",),
    ("cuda_graph", "graph"): ("graph_nodes",),
    ("occupancy",): ("registers",),
    ("local_memory",): ("spills", "spill"),
    ("multi_gpu", "multigpu"): ("gpus",),
}
_STEMS = {word: stems for words, stems in _ALSO.items() for word in words}


def spelt(text: str) -> str:
    """`text` in the letters that names have: `cp.async`, `Tensor cores` as cp_async, tensor_cores."""
    return re.sub(r"\W+", "_", text.lower()).strip("_")


def about(word: str, text: str) -> bool:
    """Whether words of `text`, which is `spelt`, begin with `word`, or with the names that the field has for it."""
    return any(f"_{stem}" in f"_{text}" for stem in (word, *stems_of(word)))


def stems_of(word: str) -> tuple[str, ...]:
    """How names begin that mean what `word`, which is `spelt`, means; nothing for one that is a name's own."""
    return _STEMS.get(word) or _STEMS.get(word.removesuffix("s"), ())


def suggestions(text: str, names: Iterable[str]) -> list[str]:
    """At most three of `names` that `text` may have meant, likeliest first."""
    known, word = list(names), spelt(text)
    of_meaning = [next((name for name in known if name.startswith(stem)), "") for stem in stems_of(word)]
    of_words = [name for name in known if word and all(f"_{part}" in f"_{name}" for part in word.split("_"))]
    of_spelling = difflib.get_close_matches(word, known, n=3)
    found = dict.fromkeys(filter(None, of_meaning)) or dict.fromkeys([*of_words, *of_spelling])
    return list(found)[:3]
