"""Where tokens lie in pages."""

import triton
import triton.language as tl


@triton.jit
def slot_of(table, sequence, head, heads, token, pages, PAGE: tl.constexpr, inside):
    """Where a token of a head lies, in rows of the cache."""
    page = tl.load(table + sequence * pages + token // PAGE, mask=inside, other=0).to(tl.int64)
    return (page * heads + head) * PAGE + token % PAGE
