"""Optimized: NVFP4 pages: 9 bytes per 16 elements, not 32."""
# predicts: baseline 0.345 ms = 4 * sequences * context * kv_heads * dim / dram_read + 10e-6 on h100  (2 bytes an element)
# predicts: optimized 0.104 ms = 2 * sequences * context * kv_heads * 9 * dim / 16 / dram_read + 10e-6 on h100  (and scales)
# proves: /\bF2FP\.F16\.E4M3\.UNPACK_B\b/ in attend
# proves: /\bLOP3\.LUT .*, 0x8e008e00, / in attend

from shared_nvfp4 import quantized
from shared_paged_decode import decoder


def prepare(q, k, v, keys, values, table, context):
    return decoder(q, k, v, quantized(keys), quantized(values), table, context)
