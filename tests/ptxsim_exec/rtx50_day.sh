#!/bin/bash
# Runs the command of a page that has --through, in this tree, with another build's folder and another folder for results.
# Usage: rtx50_day.sh <page> <build folder> <folder for results>
set -euo pipefail
page=$1 build=$2 out=$3
command=$(awk '/^```/ { if (block ~ /--through/) printf "%s", block; block = ""; inside = /sh$/; next } inside { block = block $0 "\n" }' "$page")
[[ -n $command ]] || { echo "$page: no command with --through" >&2; exit 2; }
command=${command//'build/default'/$build}
[[ $command =~ --out\ [^\ ]+ ]] || { echo "$page: the command has no --out" >&2; exit 2; }
command=${command/"${BASH_REMATCH[0]}"/--out $out}
command=${command/--brief/--brief --programs $build/bin}
cd "$(dirname "$0")/../.."
echo "$command"
eval "$command"
