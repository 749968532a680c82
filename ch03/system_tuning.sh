#!/usr/bin/env bash
# Settings of a host that make GPU jobs slow or their times noisy: reads them all, changes none without --apply.
set -euo pipefail
# shellcheck source=SCRIPTDIR/shared_checklist.sh
source "$(dirname "${BASH_SOURCE[0]}")/shared_checklist.sh"

begin "ch03/system_tuning.sh            reads every setting, and changes nothing
ch03/system_tuning.sh --apply    as root: sets those that differ, until the next boot; clocks, limits and firmware stay as they are" "$@"

files() { # PATTERN: files below the tree that match
    compgen -G "$tree$1" || true
}

write_each() { # VALUE PATTERN: the command that writes it to all of them
    printf '%s' "for f in $tree$2; do echo $1 >\"\$f\"; done"
}

write() { # VALUE FILE
    printf 'echo %s >%s' "$1" "$tree$2"
}

governors() {
    local file
    for file in $(files '/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor'); do cat "$file"; done | number_and
}

setting "CPU governor" "a core that has slowed down launches kernels later" \
    "$(governors)" performance "$(write_each performance '/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor')"

setting "automatic NUMA balancing" "the kernel unmaps pages to see who uses them, which costs page faults, and moves them" \
    "$(value /proc/sys/kernel/numa_balancing)" 0 "$(write 0 /proc/sys/kernel/numa_balancing)"

setting "zone reclaim" "the kernel drops cached files of a full node before it takes memory of another" \
    "$(value /proc/sys/vm/zone_reclaim_mode)" 0 "$(write 0 /proc/sys/vm/zone_reclaim_mode)"

setting "transparent huge pages" "who asks with madvise gets them, see the pair huge_pages; nobody else waits for them" \
    "$(chosen /sys/kernel/mm/transparent_hugepage/enabled)" madvise "$(write madvise /sys/kernel/mm/transparent_hugepage/enabled)"

setting "compaction for huge pages" "who did not ask does not wait while the kernel makes room for a huge page" \
    "$(chosen /sys/kernel/mm/transparent_hugepage/defrag)" madvise "$(write madvise /sys/kernel/mm/transparent_hugepage/defrag)"

setting "swappiness" "pinned pages stay, so the kernel swaps what it finds of the others, the loader's among them" \
    "$(value /proc/sys/vm/swappiness)" 10 "$(write 10 /proc/sys/vm/swappiness)"

# Interrupts of network cards, InfiniBand's included, on the CPUs of the card's node.
for card in $(files '/sys/bus/pci/devices/*'); do
    class=$(cat "$card/class" 2>/dev/null || true)
    node=$(cat "$card/numa_node" 2>/dev/null || echo -1)
    [[ $class == 0x0200* || $class == 0x0207* ]] && [[ $node != -1 && -d $card/msi_irqs ]] || continue
    cpus=$(value "/sys/devices/system/node/node$node/cpulist")
    inside=0 all=0 command=
    for irq in "$card"/msi_irqs/*; do
        file=/proc/irq/${irq##*/}/smp_affinity_list
        [[ -r $tree$file ]] || continue
        ((++all))
        if [[ $(value "$file") == "$cpus" ]]; then ((++inside)); else command+="$(write "$cpus" "$file"); "; fi
    done
    ((all)) || continue
    setting "interrupts of ${card##*/}" "a handler on the other node takes the packet across the link; irqbalance undoes this, so stop it" \
        "$inside of $all on CPUs $cpus" "$all of $all on CPUs $cpus" "${command:-nothing to do}"
done

gpus() { # FIELD: its values, one per GPU
    command -v nvidia-smi >/dev/null || return 0
    nvidia-smi --query-gpu="$1" --format=csv,noheader 2>/dev/null || true
}

setting "GPU persistence mode" "without it the driver unloads when the last job ends, and the next one's first call waits for it" \
    "$(gpus persistence_mode | number_and)" Enabled "nvidia-smi --persistence-mode=1"

setting "GPU clocks" "a clock that moves moves every time; a locked one costs peak speed, and other users of the GPU" \
    "$(gpus clocks.sm,clocks.max.sm | number_and)" "(the same for all runs that are compared)" \
    "by hand: nvidia-smi --lock-gpu-clocks=MHZ, and afterwards --reset-gpu-clocks"

# What RDMA needs besides.
setting "locked memory" "RDMA and pinned buffers lock pages, and fail beyond the limit" \
    "$(ulimit -l)" unlimited "by hand: a file in /etc/security/limits.d with '* - memlock unlimited', and a new login"

has_rdma=$(files '/sys/class/infiniband/*' | head -n 1)
peermem() { value /proc/modules | grep -c '^nvidia_peermem ' || true; }

setting "GPUDirect RDMA" "without the module a network card cannot read the GPU's memory, and data goes through the host" \
    "${has_rdma:+$(peermem)}" 1 "modprobe nvidia_peermem"

links() {
    local port
    for port in $(files '/sys/class/infiniband/*/ports/*/state'); do sed 's/^[0-9]*: //' "$port"; done | number_and
}

setting "InfiniBand and RoCE ports" "NCCL leaves out a port that is down, and says nothing" \
    "$(links)" ACTIVE "by hand: ibstat, then the cable, the switch, or the subnet manager"

end
