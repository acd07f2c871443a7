#!/bin/bash
# A layer of experts from a checkpoint on a GPU that is not there: gate and up alone, unpacked and prepared, then the whole
# MLP, in four bits and, prepared, in 16: its launches follow each other without a wait by the host.
# Usage: experts.sh <dualgemm> <work folder> "<ptxsim exec ... -->"
set -euo pipefail
dualgemm=$1 work=$2 through=$3
rm -rf "$work"
mkdir -p "$work"
cd "$work"
"$dualgemm" make-layer --out layer.safetensors --activations x.npy --m 24 --n 128 --k 256 --mlp --experts 5
"$dualgemm" quantize layer.safetensors --out nvfp4.safetensors
echo 8 0 11 1 4 >counts.txt
run=(run nvfp4.safetensors --experts --expert-tokens counts.txt --activations x.npy --device cuda --check)
# shellcheck disable=SC2086 # a command with its arguments
$through "$dualgemm" "${run[@]}"
# shellcheck disable=SC2086
$through "$dualgemm" "${run[@]}" --prepared
# shellcheck disable=SC2086
$through "$dualgemm" "${run[@]}" --mlp --quantize-x --quantize-h --h-global-scale 0.01
# shellcheck disable=SC2086
$through "$dualgemm" "${run[@]}" --mlp --prepared
