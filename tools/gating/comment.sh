#!/usr/bin/env bash
# Puts OUT's comment.md on pull request NUMBER of GITHUB_REPOSITORY with gh: one comment, which a later run changes in place.
set -euo pipefail

: "${GITHUB_REPOSITORY:?expected OWNER/NAME}" "${NUMBER:?expected the number of a pull request}" "${OUT:=out}"
mark='<!-- benchmark_cli: comment -->'

if [[ ! -f $OUT/comment.md ]]; then
    echo "$OUT/comment.md: found no such file; expected one that a run left, so nothing is said" >&2
    exit 0
fi

ids=$(gh api --paginate "repos/$GITHUB_REPOSITORY/issues/$NUMBER/comments" --jq ".[] | select(.body | startswith(\"$mark\")) | .id")
if [[ -n $ids ]]; then
    gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/${ids##*$'\n'}" --field "body=@$OUT/comment.md" --silent
else
    gh pr comment "$NUMBER" --repo "$GITHUB_REPOSITORY" --body-file "$OUT/comment.md"
fi
