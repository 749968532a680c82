# shellcheck shell=bash
# A checklist of settings: each with its reason, what it is now, what it should be, and the command that sets it. Sourced, never run.

apply=0 # 1 with --apply
tree=   # what /sys and /proc are read and written below; empty, but in tests
as_wanted=0 differ=0 absent=0 changed=0 failed=0

refuse() { # SENTENCE
    printf 'error: %s\n' "$1" >&2
    exit 1
}

begin() { # USAGE ARGUMENTS...
    local usage=$1
    shift
    while (($#)); do
        case $1 in
            --apply) apply=1 ;;
            --tree)
                [[ -d ${2-} ]] || refuse "--tree: found '${2-}'; expected a folder with sys and proc"
                tree=$2
                shift
                ;;
            -h | --help)
                printf '%s\n' "$usage"
                exit 0
                ;;
            *) refuse "found '$1'; expected --apply, or nothing" ;;
        esac
        shift
    done
    if ((apply)) && [[ $(id -u) != 0 ]]; then refuse "--apply: found user $(id -un); expected root"; fi
}

value() { # FILE: what a file below the tree says, nothing where it is missing
    [[ -r $tree$1 ]] && cat "$tree$1" 2>/dev/null || true
}

chosen() { # FILE: of "always [madvise] never" the word in brackets
    value "$1" | sed -n 's/.*\[\([^]]*\)\].*/\1/p'
}

number_and() { # VALUES on lines: "96 performance", or how many of each where they differ
    sort | uniq -c | sed 's/^ *//' | paste -sd, | sed 's/,/, /g'
}

# One setting. PRESENT empty: this machine does not have it. WANTED in brackets: nobody but the reader can tell whether it is so.
# A COMMAND that begins with "by hand:" is never run by this script.
setting() { # NAME WHY PRESENT WANTED COMMAND
    local name=$1 why=$2 present=$3 wanted=$4 command=$5 state
    if [[ -z $present ]]; then
        ((++absent))
        printf '%s\n  present  not on this machine\n\n' "$name"
        return
    fi
    if [[ $present == "$wanted" || $present =~ ^[0-9]+\ $wanted$ ]]; then
        ((++as_wanted))
        state="as wanted"
    elif [[ $wanted == "("* ]]; then
        state="yours to judge"
    else
        ((++differ))
        state="differs"
    fi
    printf '%s: %s\n  why      %s\n  present  %s\n  wanted   %s\n  set by   %s\n' "$name" "$state" "$why" "$present" "$wanted" "$command"
    if ((apply)) && [[ $state == differs && $command != "by hand:"* ]]; then
        if bash -euo pipefail -c "$command" >/dev/null; then
            ((++changed))
            printf '  applied\n'
        else
            ((++failed))
            printf '  failed   the line above tells why\n'
        fi
    fi
    printf '\n'
}

end() {
    printf '%d as wanted, %d differ, %d not on this machine' "$as_wanted" "$differ" "$absent"
    if ((apply)); then
        printf '; %d changed, %d failed\n' "$changed" "$failed"
        ((failed == 0)) || exit 1
    else
        printf '; nothing was changed\n'
    fi
}
