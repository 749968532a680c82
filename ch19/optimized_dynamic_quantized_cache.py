"""Tokens lose precision with age: old ones have 4 bits."""
# predicts: baseline 0.345 ms = 4 * sequences * context * kv_heads * dim / dram_read + 10e-6 on h100  (2 bytes an element)
# predicts: optimized 0.102 ms = 2 * sequences * kv_heads * (context * (dim / 2 + 4) + hot * dim / 2) / dram_read + 10e-6 on h100
# proves: /\bF2FP\.F16\.E4M3\.UNPACK_B\b/ in attend
# proves: /\bLOP3\.LUT .*, 0xf000f, / in attend
# proves: /\bHADD2 .*, -1032, -1032\b/ in attend
# proves: counter dram__bytes.sum < 0.4 x baseline

from shared_aged_attention import decoder


def prepare(q, k, v, keys, values, hot):
    return decoder(q, k, v, keys, values, hot)
