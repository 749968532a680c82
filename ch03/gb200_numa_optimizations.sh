#!/usr/bin/env bash
# What a host with Grace CPUs (GH200, GB200, GB300) needs besides system_tuning.sh: reads it all, changes none without --apply.
set -euo pipefail
# shellcheck source=SCRIPTDIR/shared_checklist.sh
source "$(dirname "${BASH_SOURCE[0]}")/shared_checklist.sh"

begin "ch03/gb200_numa_optimizations.sh            reads every setting, and changes nothing
ch03/gb200_numa_optimizations.sh --apply    as root: sets those that differ, until the next boot; the kernel's own stay as they are" "$@"

# Neoverse V2, of which Grace is made: implementer 0x41, part 0xd4f.
if ! value /proc/cpuinfo | grep -q '^CPU part.*0xd4f'; then
    what="needs Grace CPUs (Neoverse V2); found $(value /proc/cpuinfo | sed -n 's/^model name[^:]*: //p' | sort -u | head -n 1)"
    ((apply == 0)) || refuse "$what; expected a GH200, GB200 or GB300"
    printf 'SKIPPED: %s; try ch03/system_tuning.sh\n' "$what"
    exit 0
fi

# Which GPU is on which Grace. Two of a GB200's four GPUs share one: their numbers say nothing of nodes, so the PCI address is asked.
for list in "$tree"/sys/devices/system/node/node[0-9]*/cpulist; do
    cpus=$(cat "$list")
    node=$(basename "$(dirname "$list")")
    if [[ $cpus ]]; then printf '%s: CPUs %s\n' "$node" "$cpus"; else printf '%s: memory alone, of a GPU\n' "$node"; fi
done
for device in "$tree"/sys/bus/pci/devices/*; do
    [[ $(cat "$device/vendor" 2>/dev/null) == 0x10de && $(cat "$device/class") == 0x0302* ]] || continue
    printf 'GPU at %s: node%s\n' "${device##*/}" "$(cat "$device/numa_node")"
done
printf '\n'

in_command_line() { # WORD: itself if the kernel was started with it
    value /proc/cmdline | tr ' ' '\n' | grep -x "$1" || printf 'not given\n'
}

boot="by hand: add it to GRUB_CMDLINE_LINUX, update-grub, and boot again"

setting "automatic NUMA balancing" "the GPU's memory is a node too: the kernel would unmap and move pages that the GPU uses" \
    "$(value /proc/sys/kernel/numa_balancing)" 0 "echo 0 >$tree/proc/sys/kernel/numa_balancing"

setting "CPU governor" "a core that has slowed down launches kernels later" \
    "$(cat "$tree"/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor 2>/dev/null | number_and)" performance \
    "for f in $tree/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor; do echo performance >\"\$f\"; done"

setting "page size" "Grace runs kernels of 4 KiB and of 64 KiB pages; larger ones mean fewer page faults and TLB misses" \
    "$(getconf PAGESIZE)" 65536 "by hand: install and boot the distribution's 64k kernel"

setting "zeroing at allocation" "the kernel zeroes pages when it allocates them, also those that are overwritten at once" \
    "$(in_command_line init_on_alloc=0)" init_on_alloc=0 "$boot; it is a protection against leaks, so weigh it"

setting "GPU persistence mode" "without it the driver unloads when the last job ends, and the GPU's memory leaves its node" \
    "$(command -v nvidia-smi >/dev/null && nvidia-smi --query-gpu=persistence_mode --format=csv,noheader | number_and)" Enabled \
    "nvidia-smi --persistence-mode=1"

end
