# What the example takes for granted: a model's folder, with a layer in it and the config that loaders read, and activations.
mkdir -p model
echo '{"model_type": "llama", "hidden_size": 512, "intermediate_size": 64}' > model/config.json
dualgemm make-layer --out model/model.safetensors --activations x.npy --m 8 --n 64 --k 512
dualgemm make-layer --out scrap.safetensors --activations down_x.npy --m 8 --n 16 --k 64
EXAMPLE
# Both are whole models, and sound.
for folder in model-nvfp4 model-ct; do
  dualgemm validate --strict $folder
  grep -q quantization_config $folder/config.json
done
