"""Settings of NCCL by machine, as data.

NCCL_ALGO and NCCL_PROTO are in none: a list of algorithms excludes all others, and LL128 corrupts data where the platform does not
support it. Source: NCCL's user guide, ncclConfig_t and environment variables.
"""

import functools

import torch.distributed as dist

DEFAULTS = "defaults"
COMMUNICATORS = {  # fields of ncclConfig_t: how many blocks of threads (CTAs), each on an SM, an operation may take
    DEFAULTS: {},
    "8xb200": {"min_ctas": 16, "max_ctas": 32, "cga_cluster_size": 2},
    "nvl72": {"min_ctas": 24, "max_ctas": 32, "cga_cluster_size": 4},
    "few_sms": {"max_ctas": 8},
}
ENVIRONMENTS = {  # read when a process makes its first communicator, so they are set before that
    DEFAULTS: {},
    "8xb200": {"NCCL_CUMEM_ENABLE": "1", "NCCL_P2P_LEVEL": "NVL", "NCCL_NET_GDR_LEVEL": "PHB"},
    "nvl72": {"NCCL_CUMEM_ENABLE": "1", "NCCL_MNNVL_ENABLE": "1", "NCCL_NET_GDR_LEVEL": "SYS"},
}


@functools.cache
def communicators():
    """A group of all ranks for each preset, by its name, the same in every call; gloo has none. Collective when first called."""
    if dist.get_backend() != "nccl":
        return {DEFAULTS: dist.group.WORLD}
    groups = {}
    for preset, fields in COMMUNICATORS.items():
        options = dist.ProcessGroupNCCL.Options()
        for name, value in fields.items():
            setattr(options.config, name, value)
        groups[preset] = dist.new_group(backend="nccl", pg_options=options)
    return groups
