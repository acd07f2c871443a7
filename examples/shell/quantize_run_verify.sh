#!/bin/sh
# From an FP32/BF16 layer to a verified result on the command line. Uses $DUALGEMM, else the dualgemm on
# the PATH; writes only into a temporary directory.
set -eu
dualgemm=${DUALGEMM:-dualgemm}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# A random bf16 layer (gate_proj and up_proj, 512 x 256 each) and 40 tokens; bring your own instead.
"$dualgemm" make-layer --m 40 --n 512 --k 256 \
  --out "$dir/layer.safetensors" --activations "$dir/x.npy"

# To NVFP4, with the error statistics of each tensor.
"$dualgemm" quantize "$dir/layer.safetensors" --out "$dir/nvfp4.safetensors" \
  --calibrate "$dir/x.npy" --check

# What the file holds, block scales included.
"$dualgemm" validate --strict "$dir/nvfp4.safetensors"

# D = silu(x * gate^T) * (x * up^T); every element compared with the double-precision oracle.
"$dualgemm" run "$dir/nvfp4.safetensors" --activations "$dir/x.npy" --out "$dir/d.npy" --check

# The same layer through every strategy.
"$dualgemm" verify --weights "$dir/nvfp4.safetensors" --activations "$dir/x.npy"
