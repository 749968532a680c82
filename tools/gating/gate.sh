#!/usr/bin/env bash
# The gate as plain shell: time the pairs of KERNELS against what was accepted; the exit code is the gate's, reports lie in OUT.
set -euo pipefail

: "${HARNESS:?expected the folder of the harness, a clone of its repository}"
: "${KERNELS:=kernels}" "${OUT:=out}"

if [[ ! -x $HARNESS/setup.sh ]]; then
    echo "error: HARNESS=$HARNESS: found no setup.sh in it; expected a clone of the harness" >&2
    exit 1
fi

code=0
"$HARNESS/setup.sh" benchmark_cli run --root "$KERNELS" --require-expectations \
    --artifacts-dir "$OUT" --suite-timeout 1200 --wait 600 "$@" || code=$?

if [[ -n ${GITHUB_STEP_SUMMARY-} && -f $OUT/comment.md ]]; then cat "$OUT/comment.md" >>"$GITHUB_STEP_SUMMARY"; fi
exit "$code"
