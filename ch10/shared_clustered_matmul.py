"""The product of shared_matmul.py with a knob: `clusterDim`, the blocks that share tiles of b where a kernel has clusters; 1, 2, 4 or 8."""

from dataclasses import replace

from shared_matmul import MATMUL


def clustered(time_at, ladder=(), clusterDim=2, also_checked_at=()):
    """MATMUL with an entry more in each shape: `clusterDim` in those of `time_at`, every size in those that are checked.

    `also_checked_at` are further shapes to check, with `clusterDim`.
    """
    return replace(
        MATMUL,
        inputs=lambda rand, m, n, k, clusterDim: MATMUL.inputs(rand, m, n, k),
        outputs=lambda m, n, k, clusterDim: MATMUL.outputs(m, n, k),
        work=lambda m, n, k, clusterDim: MATMUL.work(m, n, k),
        time_at={name: {**shape, "clusterDim": clusterDim} for name, shape in time_at.items()},
        ladder=ladder,
        check_at=(
            *({**shape, "clusterDim": 2 ** (i % 4)} for i, shape in enumerate((*MATMUL.check_at, *MATMUL.check_at[-1:]), start=1)),
            *({**shape, "clusterDim": clusterDim} for shape in also_checked_at),
        ),
    )
