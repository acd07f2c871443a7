# What the example takes for granted: x.npy of 64 x 512 (from an earlier block of the page), and a checkpoint with a whole
# layer. Down is made as the Gate of a layer of its own and gets its name as the files are joined by their headers.
dualgemm make-layer --out both.safetensors --prefix model.layers.0.mlp --n 256 --k 512 --seed 7
dualgemm make-layer --out more.safetensors --prefix down --activations h.npy --m 64 --n 512 --k 256 --seed 9
python3 - <<'JOIN'
import json
header, data = {}, b""
for path in ("both.safetensors", "more.safetensors"):
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        tensors = json.loads(file.read(size))
        tensors.pop("__metadata__", None)
        for name, tensor in tensors.items():
            tensor["data_offsets"] = [offset + len(data) for offset in tensor["data_offsets"]]
            if name != "down.up_proj.weight":
                header[name.replace("down.gate_proj", "model.layers.0.mlp.down_proj")] = tensor
        data += file.read()
end = 0  # what is left must lie without a gap
kept = b""
for tensor in sorted(header.values(), key=lambda tensor: tensor["data_offsets"]):
    begin, stop = tensor["data_offsets"]
    kept += data[begin:stop]
    tensor["data_offsets"] = [end, end + stop - begin]
    end += stop - begin
text = json.dumps(header).encode()
with open("whole.safetensors", "wb") as file:
    file.write(len(text).to_bytes(8, "little") + text + kept)
JOIN
dualgemm quantize whole.safetensors --out mlp.safetensors --calibrate x.npy --calibrate h.npy
EXAMPLE
