"""The work of workload_warp_specialization_attention.py, for sides whose tiles have 128 keys and eight warps."""
# needs: tcgen05, tma
# instead: ch18:warp_specialization_attention

from workload_warp_specialization_attention import WORKLOAD

__all__ = ["WORKLOAD"]
