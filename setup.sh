#!/usr/bin/env bash
# Makes .venv where it is missing or out of date, then runs what follows inside it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
venv=$root/.venv
stamp=$venv/setup.stamp # "unfinished" while an installation runs, then what the environment was made from
log=$venv/setup.log
os_release=/etc/os-release

usage() {
    cat <<'END'
./setup.sh COMMAND...          runs COMMAND in the environment, for example:
    ./setup.sh benchmark_cli list-targets
    ./setup.sh benchmark_cli run --targets ch01
    ./setup.sh benchmark_cli doctor
    ./setup.sh pytest
./setup.sh                     only makes the environment
./setup.sh --system            prints what installs the CUDA 13 toolkit, Nsight Systems and Nsight Compute here
./setup.sh --system --yes      installs them (as root; the driver is left as it is)
END
}

say() { printf 'setup: %s\n' "$*" >&2; }
fail() {
    say "$*"
    exit 1
}

# An environment does not survive being moved, so its folder counts too.
fingerprint() { printf '%s %s' "$root" "$(cat "$root"/{setup.sh,pyproject.toml,constraints.txt} | sha256sum)"; }
is_current() { [[ -x $venv/bin/python && -f $stamp && $(<"$stamp") == "$(fingerprint)" ]]; }

logged() { # quiet unless it fails
    "$@" >"$log" 2>&1 && return
    cat "$log" >&2
    fail "found an error (above) in: $*"
}

pip_install() { logged "$venv/bin/python" -m pip install --no-input --disable-pip-version-check --progress-bar off "$@"; }

check_python() {
    command -v python3 >/dev/null || fail "found no python3 on the PATH; expected Python 3.11 or newer"
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
        || fail "found $(python3 --version) at $(command -v python3); expected Python 3.11 or newer first on the PATH"
}

# The torch and triton that the machine brings, as pins; nothing where its torch is not one that pyproject.toml takes.
pins_of_machine() {
    local minimum found
    minimum=$(sed -n 's/.*"torch>=\([0-9.]*\)".*/\1/p' "$root/pyproject.toml")
    found=$("$venv/bin/python" - <<'END'
import importlib.metadata
import sys
for name in ("torch", "triton"):
    for found in importlib.metadata.distributions(name=name):
        if not str(found.locate_file("")).startswith(sys.prefix):
            print(f"{name}=={found.version}")
            break
END
    )
    [[ $found == torch==* ]] || return 0
    if printf '%s\n' "torch==$minimum" "${found%%$'\n'*}" | sort --check=quiet --version-sort; then printf '%s\n' "$found"; fi
}

make_environment() {
    local pins
    check_python
    # What an interrupted installation or another folder left is not to be trusted; an environment without a stamp is the user's own.
    if [[ -f $stamp && $(<"$stamp") != "$root "* ]]; then rm -rf "$venv"; fi
    mkdir -p "$venv"
    if [[ ! -x $venv/bin/python ]]; then
        say "making .venv with $(python3 --version)"
        echo unfinished >"$stamp"
        logged python3 -m venv --system-site-packages "$venv"
        [[ -n $(pins_of_machine) ]] || logged python3 -m venv --without-pip "$venv"
    fi
    echo unfinished >"$stamp"
    pins=$(pins_of_machine)
    if [[ -n $pins ]]; then
        say "keeping this machine's ${pins//$'\n'/ and }"
        { grep -v -e '^torch==' -e '^triton==' "$root/constraints.txt" && printf '%s\n' "$pins"; } >"$venv/constraints.txt"
    else
        # A torch for GPUs brings the one triton that it takes; a torch for CPUs brings none, and gets the pinned one.
        grep -v -e '^triton==' "$root/constraints.txt" >"$venv/constraints.txt"
        say "installing $(grep -e '^torch==' "$root/constraints.txt") and triton (a minute or more)"
        pip_install --constraint "$venv/constraints.txt" "$(grep -e '^torch==' "$root/constraints.txt")"
        "$venv/bin/python" -c 'import importlib.metadata; importlib.metadata.version("triton")' 2>"$log" \
            || pip_install --constraint "$venv/constraints.txt" "$(grep -e '^triton==' "$root/constraints.txt")"
    fi
    say "installing the project and its tools"
    pip_install --constraint "$venv/constraints.txt" --editable "${root}[dev]"
    # For its headers alone: what it depends on is for generating code with Python.
    pip_install --no-deps "$(grep -e '^nvidia-cutlass==' "$root/constraints.txt")"
    fingerprint >"$stamp"
    say "ready after $SECONDS s"
}

system_commands() {
    local architecture repository=https://developer.download.nvidia.com/compute/cuda/repos
    # shellcheck source=/dev/null
    source "$os_release"
    architecture=$(uname -m)
    case "$ID$VERSION_ID $architecture" in
        "ubuntu22.04 x86_64" | "ubuntu24.04 x86_64" | "debian12 x86_64") ;;
        "ubuntu22.04 aarch64" | "ubuntu24.04 aarch64") architecture=sbsa ;;
        *) fail "found $PRETTY_NAME on $architecture; expected Ubuntu 22.04 or 24.04 on x86_64 or aarch64, or Debian 12 on x86_64" ;;
    esac
    cat <<END
apt-get update
apt-get install -y ca-certificates wget build-essential python3-venv
wget -qO /tmp/cuda-keyring.deb $repository/$ID${VERSION_ID//./}/$architecture/cuda-keyring_1.1-1_all.deb
dpkg -i /tmp/cuda-keyring.deb
apt-get update
apt-get install -y cuda-toolkit-13-0 cuda-nsight-systems-13-0 cuda-nsight-compute-13-0
# then put /usr/local/cuda/bin on the PATH
END
}

system() {
    local commands
    commands=$(system_commands)
    case "$*" in
        "") printf '%s\n' "$commands" ;;
        --yes)
            [[ $EUID == 0 ]] || fail "found user $(id -un); expected root, for example: sudo ./setup.sh --system --yes"
            DEBIAN_FRONTEND=noninteractive bash -euxc "$commands"
            ;;
        *) fail "found --system $*; expected --system or --system --yes" ;;
    esac
}

case "${1-}" in
    --system)
        shift
        system "$@"
        exit
        ;;
    -h | --help)
        usage
        exit
        ;;
    -*) fail "found $1; expected a command to run, --system or --help" ;;
esac

PATH=${PATH//"$venv/bin:"/} # the environment is not made with itself
is_current || (
    flock 9 # one installation at a time; whoever waited finds it done
    is_current || make_environment
) 9<"$root/setup.sh"

if (($# == 0)); then
    usage
    exit
fi
export VIRTUAL_ENV=$venv PATH=$venv/bin:$PATH
exec "$@"
