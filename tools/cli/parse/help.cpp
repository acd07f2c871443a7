#include "tools/cli/parse/help.hpp"

#include <algorithm>

#include "core/enum_table.hpp"

namespace dualgemm::cli::help {

const char* const kProgram =
    R"(dualgemm: the gate/up half of a gated MLP in NVFP4, in one pass.

    D = act(alpha_gate * A * Gate^T)  (*)  (alpha_up * A * Up^T)

A is M x K, Gate and Up are N x K, D is M x N. NVFP4 is a 4-bit float (E2M1: 0, 0.5, 1, 1.5, 2, 3,
4, 6 and a sign), one E4M3 scale for 16 neighbours along K, and one FP32 scale for the tensor.)";

namespace {

constexpr const char* kFirstSteps = R"(
First steps:
  dualgemm info                                what this machine offers
  dualgemm make-layer --out layer.safetensors --activations x.npy
  dualgemm quantize layer.safetensors --out nvfp4.safetensors --calibrate x.npy --check
  dualgemm run nvfp4.safetensors --activations x.npy --out d.npy --check
  dualgemm verify                              every strategy against the oracle
  dualgemm bench                               the challenge's four shapes, ranked

Data go to stdout, talk to stderr. Exit status: 0 ok; 1 the operation failed (a file, a
verification); 2 the request is wrong (options, shapes); 128 + n ended by signal n. Outputs appear
complete or not at all. `dualgemm help COMMAND` explains each.)";

}  // namespace

std::string program_footer() {
  std::string text =
      "\nStrategies: ways to compute the same D. Each is a check and a baseline of the others.\n";
  for (const core::EnumRow<StrategyId>& row : core::kEnumRows<StrategyId>) {
    const std::string name = row.name;
    text +=
        "  " + name + std::string(18 - std::min<size_t>(name.size(), 17), ' ') + row.meaning + "\n";
  }
  return text + kFirstSteps;
}

const char* const kInfo = R"(
Prints the device, its cores and caches, the instruction sets found and the one that would be
used, and measured peaks (about two seconds; --no-peaks leaves them out). The percentages that
`bench` prints are relative to these peaks. GOP/s counts a multiply and an add as two; GB/s is
10^9 bytes per second.

Examples:
  dualgemm info
  dualgemm info --json --no-peaks | jq .isas
  dualgemm info --devices                      GPUs that `plan --device` knows
  DUALGEMM_FORCE_ISA=avx2 dualgemm info        shows what the override does)";

const char* const kPlan = R"(
Says how a problem would run and why, and what was rejected and why. Nothing is computed, so the
shapes may be as large as you like.

Examples:
  dualgemm plan --m 512 --n 4096 --k 7168
  dualgemm plan --m 1 --n 14336 --k 4096 --a-type bf16 --prepared      decoding, weights in 4 bits
  dualgemm plan --m 64 --n 4096 --k 7168 --strategy two_pass --isa avx2 --json
  dualgemm plan --m 64 --n 4096 --k 7168 --device cuda --prepared
  dualgemm plan --m 1024 --n 2048 --k 7168 --l 32 --grouping contiguous --device b200     experts
  dualgemm plan --m 64 --n 4096 --k 7168 --device b200                 a GPU that is not here
  dualgemm plan --m 64 --n 4096 --k 7168 --device cuda --config tile_m=64,ctas=66)";

const char* const kMakeLayer = R"(
Writes a random gated-MLP layer (gate_proj and up_proj, N x K each, with --mlp down_proj, K x N,
normal with deviation 1/sqrt(columns)) and random activations (M x K, normal, some columns 20 times
larger, as in real models) to try the other commands on. With --experts E such layers, one for each
expert. The same seed gives the same bytes.

Examples:
  dualgemm make-layer --out layer.safetensors --activations x.npy --m 64 --n 1024 --k 512
  dualgemm make-layer --out experts.safetensors --activations x.npy --mlp --experts 8)";

const char* const kQuantize = R"(
Quantises fp32, fp16 or bf16 matrices to NVFP4: global scale = amax/(6*448), block scale = amax of
16 neighbours / (6*global) rounded to E4M3, code = nearest E2M1. Every 2-D float tensor whose
columns are a multiple of 16 is taken, but for embeddings, heads, routers, norms and biases; all
others are copied unchanged. Patterns (--include, --exclude): * stands for any characters, ? for
one, the whole name must match. Gate and Up (w1 and w3; q, k and v) share one global scale, as
loaders that fuse them expect; --separate-scales gives each its own.

A folder or sharded index as input and a folder as --out quantise a whole model: shards, index,
tokenizer, config.json with quantization_config, hf_quant_config.json. These say NVFP4 (4-bit
activations) where every weight has an input scale, one --calibrate FILE for each number of
columns, and else W4A16. The folder appears complete or not at all; an interrupted run is started
anew by the same command. --force replaces the model that the folder holds.

Conventions (MODULE.weight becomes):
  modelopt            weight, weight_scale, weight_scale_2 (multiplier), input_scale (multiplier)
  compressed_tensors  weight_packed, weight_scale, weight_global_scale and input_global_scale
                      (both divisors)

--check prints for each tensor: relative L2 error, largest error, signal-to-noise ratio in dB, the
share of values that were clipped at 6 * scale, and the share that became zero.

Examples:
  dualgemm quantize model.safetensors --out nvfp4.safetensors --check
  dualgemm quantize model/ --out model-nvfp4/ --calibrate x.npy --calibrate down_x.npy
  dualgemm quantize w.npy --out w.safetensors --four-over-six --scale-layout swizzled_128x4
  dualgemm quantize model.safetensors --out ct.safetensors --convention compressed-tensors)";

const char* const kConvert = R"(
Rewrites NVFP4 checkpoints: scale layout, nibble order, naming convention, ggml blocks. Codes and
block scales are permuted, never quantised again; other tensors pass through untouched. Where
multiplier and divisor are not each other's reciprocal in FP32, the metadata keep the original, so
there and back is the identity. Experts in one tensor become modules of their own.

Examples:
  dualgemm convert in.safetensors --out out.safetensors --scale-layout swizzled_128x4
  dualgemm convert comfy.safetensors --from-nibble-order high-even --nibble-order low-even \
           --out out.safetensors
  dualgemm convert modelopt.safetensors --convention compressed-tensors --out ct.safetensors
  dualgemm convert modelopt.safetensors --to ggml --out blocks.safetensors
  dualgemm convert blocks.safetensors --from ggml --to modelopt --out back.safetensors)";

const char* const kRun = R"(
Runs one layer. Weights: --prefix with gate_proj and up_proj, w1 and w3, or a stacked gate_up_proj,
in any convention; --expert takes one expert, --experts all of them. Activations in fp32, fp16 or bf16 are quantised to NVFP4 first, with the checkpoint's
input scale if it has one, else with their own amax; --a-type bf16 (or f16, f32) leaves them as
they are ("W4A16": weights in 4 bits). Activations that are NVFP4 already are taken as they are,
by --experts and --mlp too. A file with several tensors needs --activations-tensor.

--mlp computes the whole layer, Down (down_proj, w2) too: Y = H * Down^T, with H = D. X and H stay in
16 bits unless --quantize-x, --quantize-h: NVFP4 then, with the checkpoint's input scales (X without
one: each row's amax). Routers are not read: with --experts the rows of X lie expert by expert, as
--expert-tokens counts them, and so do those of Y.

--check compares every element of D, or Y, with the double-precision oracle within a derived bound.

Examples:
  dualgemm run nvfp4.safetensors --prefix model.layers.0.mlp --activations x.npy --out d.npy --check
  dualgemm run nvfp4.safetensors --activations x.npy --mlp --quantize-x --quantize-h --out y.npy
  dualgemm run nvfp4.safetensors --activations x.npy --a-type bf16 --d-type f32 --out d.safetensors
  dualgemm run nvfp4.safetensors --activations x.npy --act swiglu_oai --out d.npy)";

const char* const kVerify = R"(
Runs every strategy and compares D with the double-precision oracle: each element must lie within a
bound derived from the operands, so that one lost tile cannot hide in an average. Without --m, --n,
--k it tries seeded shapes chosen to hit edges (1, tile-1, tile, tile+1 ...). On failure it prints
the worst element, a map of the 16x16 tiles (. right, X wrong) and one line that repeats the
failure; the exit status is 1. With --grouping every shape is tried with ragged rows, an expert that
has none among them, with all rows of one expert, and where that can be said with rows of no expert;
rows of D that are no expert's must stay as they were.

Examples:
  dualgemm verify
  dualgemm verify --m 1:70:3 --n 48 --k 16,128,1040 --strategy fused,two_pass --act gelu_tanh
  dualgemm verify --m 512 --n 4096 --k 7168 --samples 8192       a sample instead of every element
  dualgemm verify --grouping masked --m 40 --n 128 --k 256 --l 1,5     groups of experts
  dualgemm verify --weights nvfp4.safetensors --activations x.npy)";

const char* const kBench = R"(
Times every strategy on the challenge's shapes (or yours), checks each result, and ranks them.
Rounds are interleaved over the strategies, and two of them are compared round by round, so that what
else the machine does hurts both: where the median of the ratios lies at 95 % confidence says which is
faster, or that they cannot be told apart. The fused D is compared with the oracle on at least 4096
elements spread over all tiles, and every element of every other D with the fused one.

Columns: median time in ms over the rounds; noise (their spread); speed-up over two_pass; GOP/s =
4*M*N*K*L / time; GB/s of operands and result; % of the roofline (the larger of the arithmetic and
the bandwidth limit, from peaks measured in this run); bytes of intermediates written and read;
status.

On a GPU whose fused kernels take prepared weights, fused is listed twice: "fused" with unpacked
weights, "fused prepared" with weights that were prepared before. With --prepared, only the latter.

Examples:
  dualgemm bench
  dualgemm bench --m 1,16,256 --n 4096 --k 7168 --strategy fused,two_pass --prepared
  dualgemm bench --m 1024:4096:1024 --markdown report.md --json report.json
  dualgemm bench --csv - --no-peaks > times.csv)";

const char* const kValidate = R"(
Checks a safetensors, GGUF or npy file: header, sizes, and every gated layer in it with all that a
run would use, Down, biases and all experts too; says of each whether `run` can use it, and why not.
Scales that are NaN or infinite make NaN of every output they touch: they are errors unless
--allow-nan. --strict also fails on negative block scales (the sign is ignored in computing, as the
hardware does). Where many layers have the same defect, 20 lines are printed.

Example:
  dualgemm validate --strict model.safetensors)";

const char* const kHelp = R"(
Examples:
  dualgemm help
  dualgemm help run
  dualgemm help bench --json                    the options of bench, for programs)";

const char* const kCompletion = R"(
`make install` puts the scripts where the shells look for them. Without installing:

Examples:
  source <(dualgemm completion bash)
  source <(dualgemm completion zsh)
  dualgemm completion fish | source)";

const char* const kMan = R"(
`make install` installs it, so that `man dualgemm` shows it. Without installing:

Example:
  dualgemm man | man -l -)";

}  // namespace dualgemm::cli::help
