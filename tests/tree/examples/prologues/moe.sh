# What the example takes for granted: x.npy of 64 x 512 (from an earlier block of the page), and a checkpoint with the eight
# experts of a layer. Each is made as a layer of its own; the files are joined by their headers.
for expert in 0 1 2 3 4 5 6 7; do
  dualgemm make-layer --out expert$expert.safetensors --prefix model.layers.0.mlp.experts.$expert --n 64 --k 512 \
    --seed $((100 + 2 * expert))
done
python3 - <<'JOIN'
import json
header, data = {}, b""
for expert in range(8):
    with open(f"expert{expert}.safetensors", "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        tensors = json.loads(file.read(size))
        tensors.pop("__metadata__", None)
        for name, tensor in tensors.items():
            tensor["data_offsets"] = [offset + len(data) for offset in tensor["data_offsets"]]
            header[name] = tensor
        data += file.read()
text = json.dumps(header).encode()
with open("experts.safetensors", "wb") as file:
    file.write(len(text).to_bytes(8, "little") + text + data)
JOIN
dualgemm quantize experts.safetensors --out moe.safetensors
EXAMPLE
