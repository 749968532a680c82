"""Train over several nodes: tensor parallelism and sharding stay inside a node, only a rank's shard of the gradients crosses nodes.

torchrun --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint HOST:29500 ch04/multi_node_blackwell.py --tp-size 2
torchrun --nproc-per-node 4 ch04/multi_node_blackwell.py --virtual-nodes 2          one host plays two nodes; on a CPU too

multi_node.sbatch and multi_node.yaml start it by Slurm and by Kubernetes. Checks itself as training_8xb200_pipeline.py does.
"""

import sys

from shared_torchrun import joined
from training_8xb200_pipeline import options, tp_of, trained, verdict


def mesh_of(ranks, local_ranks, virtual_nodes, tp):
    """The axes of the mesh: nodes hold copies, dp shards inside a node, tp shares out blocks. Raises ValueError if they do not fit."""
    nodes = virtual_nodes or ranks // local_ranks
    if ranks % (nodes * tp):
        raise ValueError(f"found {ranks} ranks; expected a multiple of {nodes} nodes times a --tp-size of {tp}")
    return {"node": nodes, "dp": ranks // (nodes * tp), "tp": tp}


def main(arguments=None):
    """Train in the ranks that torchrun started; 0 if the checks hold."""
    parser = options(__doc__)
    parser.add_argument("--virtual-nodes", type=int, default=0, help="treat the ranks of one host as so many nodes")
    flags = parser.parse_args(arguments)
    with joined() as here:
        nodes = flags.virtual_nodes or here.ranks // here.local_ranks
        dims = mesh_of(here.ranks, here.local_ranks, flags.virtual_nodes, tp_of(flags, here.ranks // nodes))
        return verdict(here, dims, flags, *trained(here, dims, flags))


if __name__ == "__main__":
    sys.exit(main())
