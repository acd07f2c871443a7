# What the example takes for granted: x.npy of 64 x 512 (from an earlier block of the page), and a checkpoint with the eight
# experts of a layer.
dualgemm make-layer --out experts.safetensors --n 64 --k 512 --experts 8 --seed 100
dualgemm quantize experts.safetensors --out moe.safetensors
EXAMPLE
