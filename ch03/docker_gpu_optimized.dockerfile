# syntax=docker/dockerfile:1
# This project in a container that sees the host's GPUs: the driver stays on the host, the container brings CUDA and Python.
#
#   docker build -f ch03/docker_gpu_optimized.dockerfile -t performance-pairs .
#   docker run --rm --gpus '"device=0"' --cpuset-cpus 0-15 --cpuset-mems 0 \
#       --ulimit memlock=-1 --shm-size 8g --cap-add SYS_NICE performance-pairs run --targets ch01
#
# What each flag of `docker run` is for:
#   --gpus           the NVIDIA Container Toolkit passes the device and the driver's libraries; without it there is no GPU
#   --cpuset-cpus    a set of CPUs, which threads are counted by; --cpus is a share of time, and libraries still start a thread per CPU
#   --cpuset-mems    the NUMA node of those CPUs, and of the GPU: ch03/bind_numa_affinity.py shows it
#   --ulimit memlock pinned memory and RDMA lock pages
#   --shm-size       /dev/shm, where workers of a DataLoader and NCCL put their buffers; by default it has 64 MB
#   --cap-add        SYS_NICE alone allows set_mempolicy(2), which binds memory to a node; never --privileged
ARG CUDA=13.0.1
FROM nvidia/cuda:${CUDA}-devel-ubuntu24.04

# compute: CUDA; utility: nvidia-smi and NVML. Graphics and video stay out.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    PYTHONDONTWRITEBYTECODE=1 \
    PIP_NO_CACHE_DIR=1

SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ git libnuma1 numactl python3 python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*

# Not root: what runs here needs no more than its devices and its folder. The pods of this chapter name the same user by its number.
RUN useradd --create-home --uid 10001 --shell /bin/bash bench \
    && install --directory --owner=bench --group=bench /opt/performance-pairs
USER bench
WORKDIR /opt/performance-pairs

# The environment changes less often than the code, so its layer comes first.
COPY --chown=bench:bench pyproject.toml constraints.txt setup.sh README.md LICENSE ./
COPY --chown=bench:bench common common
COPY --chown=bench:bench tools tools
RUN ./setup.sh true
COPY --chown=bench:bench . .

ENTRYPOINT ["./setup.sh", "benchmark_cli"]
CMD ["doctor"]
