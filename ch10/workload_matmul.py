"""Product of two bf16 matrices, c = a b^T, from three loops to what a library does: every step of the ladder is one idea more."""

# needs: wgmma, tma, clusters
# reason: the baseline is the product as it is written down, on CUDA cores; tensor cores make 2048 products a cycle, CUDA cores 128
from shared_clustered_matmul import clustered

WORKLOAD = clustered(
    {
        "large": {"m": 8192, "n": 8192, "k": 8192},  # 15.5 waves of tiles of 256 x 256
        "medium": {"m": 4096, "n": 4096, "k": 4096},  # 3.9 waves
        "awkward": {"m": 4000, "n": 4104, "k": 4072},  # 4.1 waves, of which 16 tiles have 8 columns
    },
    ladder=(
        "shared_tile",
        "register_tile",
        "ch10/baseline_double_buffered_pipeline.cu",
        "ch10/optimized_double_buffered_pipeline.cu",
        "ch10/optimized_pipeline_3stage.cu",
        "ch10/optimized_tma_2d_pipeline.cu",
        "wgmma",
        "ch10/optimized_warp_specialized_pipeline.cu",
        "clustered",
        "ch10/optimized_persistent_matmul.cu",
    ),
)
