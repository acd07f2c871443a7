# What the example takes for granted: x.npy of 64 x 512 (from an earlier block of the page), and a checkpoint with a whole
# layer, Down's input scale too.
dualgemm make-layer --out whole.safetensors --n 256 --k 512 --mlp --seed 7
dualgemm make-layer --out scrap.safetensors --activations h.npy --m 64 --n 512 --k 256 --seed 9
dualgemm quantize whole.safetensors --out mlp.safetensors --calibrate x.npy --calibrate h.npy
EXAMPLE
