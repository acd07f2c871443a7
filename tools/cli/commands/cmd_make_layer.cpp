#include <fmt/format.h>

#include <cmath>

#include "tools/checkpoint_jobs/element_types.hpp"
#include "tools/cli/commands/commands.hpp"
#include "tools/cli/commands/output_file.hpp"
#include "tools/cli/commands/ready_run.hpp"
#include "tools/cli/print/report.hpp"
#include "tools/verify/operands.hpp"

namespace dualgemm::cli {
namespace {

constexpr double kOutlier = 20.0;  // of some activation columns, as the help text says

struct RandomMatrix {
  std::string name;
  int64_t rows, cols;
  double deviation, outlier;  // outlier 1 = none
};

Status add_random(const RandomMatrix& matrix, DataType type, uint64_t seed,
                  checkpoint::TensorFile& file) {
  int64_t count = 0, bits = 0;
  if (__builtin_mul_overflow(matrix.rows, matrix.cols, &count) ||
      __builtin_mul_overflow(count, int64_t{32}, &bits)) {
    return Status::error(StatusCode::kOverflow, matrix.name,
                         fmt::format("{} x {}", matrix.rows, matrix.cols), "must fit in 64 bits");
  }
  const int64_t size = count * checkpoint::bits_of(checkpoint::element_type(type)) / 8;
  Expected<verify::AlignedBytes> memory = verify::allocate_filled(size, 0);
  if (!memory) return memory.status();
  auto owner = std::make_shared<verify::AlignedBytes>(*std::move(memory));
  DUALGEMM_TRY(verify::random_normal(type, count, matrix.deviation,
                                     matrix.outlier == 1.0 ? 0 : matrix.cols, matrix.outlier, seed,
                                     owner->data()));
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(owner->data()),
                                         static_cast<size_t>(owner->size()));
  return file.add({matrix.name, checkpoint::element_type(type), {matrix.rows, matrix.cols}, bytes},
                  owner);
}

// Seeds of one layer's tensors; the activations' stands among those of the first.
enum : uint64_t { kGateSeed, kUpSeed, kActivationsSeed, kDownSeed, kSeedsOfLayer };

Status make_layer(const MakeLayerCommand& command, const std::string& prefix, uint64_t seed,
                  checkpoint::TensorFile& file) {
  const auto add = [&](const char* name, int64_t rows, int64_t cols, uint64_t offset) {
    const double deviation = 1.0 / std::sqrt(static_cast<double>(cols));
    return add_random({prefix + name, rows, cols, deviation, 1.0}, command.type, seed + offset,
                      file);
  };
  if (command.stacked) {
    int64_t rows = 0;
    if (__builtin_mul_overflow(command.n, int64_t{2}, &rows)) {
      return Status::error(StatusCode::kOverflow, "--n", std::to_string(command.n),
                           "2 * n must fit in 64 bits");
    }
    DUALGEMM_TRY(add(".gate_up_proj.weight", rows, command.k, kGateSeed));
  } else {
    DUALGEMM_TRY(add(".gate_proj.weight", command.n, command.k, kGateSeed));
    DUALGEMM_TRY(add(".up_proj.weight", command.n, command.k, kUpSeed));
  }
  if (!command.mlp) return {};
  return add(".down_proj.weight", command.k, command.n, kDownSeed);
}

Status make_weights(const MakeLayerCommand& command, checkpoint::TensorFile& file) {
  if (command.experts == 0) return make_layer(command, command.prefix, command.seed, file);
  for (int64_t expert = 0; expert < command.experts; ++expert) {
    DUALGEMM_TRY(make_layer(command, fmt::format("{}.experts.{}", command.prefix, expert),
                            command.seed + static_cast<uint64_t>(expert) * kSeedsOfLayer, file));
  }
  return {};
}

Status write_both(const MakeLayerCommand& command, const checkpoint::TensorFile& weights,
                  const checkpoint::TensorFile& activations) {
  checkpoint::OutputSet outputs;
  DUALGEMM_TRY(write_tensors(outputs, command.out, weights));
  if (!command.activations.empty())
    DUALGEMM_TRY(write_tensors(outputs, command.activations, activations));
  return outputs.commit();
}

}  // namespace

int execute(const MakeLayerCommand& command) {
  if (const Status status = check_threads(0); !status.ok()) return fail_usage(status);
  if (command.k % kSfVec != 0) {
    return fail_usage(Status::invalid("k", std::to_string(command.k), "must be a multiple of 16"));
  }
  if (command.mlp && command.n % kSfVec != 0) {
    return fail_usage(Status::invalid("n", std::to_string(command.n),
                                      "must be a multiple of 16 with --mlp: Down's columns"));
  }
  for (const std::string& path : {command.out, command.activations}) {
    if (path.empty()) continue;
    if (const Status status = check_output_name(path); !status.ok()) return fail_usage(status);
  }
  if (const Status status =
          check_different_files({{"--out", command.out}, {"--activations", command.activations}});
      !status.ok()) {
    return fail_usage(status);
  }
  if (command.dry_run) return end_dry_run({command.out, command.activations}, command.json);
  checkpoint::TensorFile weights, activations;
  const auto refuse = [](const Status& status) {  // a size beyond 64 bits is the request's fault
    return status.code() == StatusCode::kOverflow ? fail_usage(status) : fail(status);
  };
  if (const Status status = make_weights(command, weights); !status.ok()) return refuse(status);
  if (!command.activations.empty()) {
    // npy has no bf16; fp32 needs no explaining.
    const bool npy = is_npy(command.activations) && command.type == DataType::kBF16;
    const DataType type = npy ? DataType::kF32 : command.type;
    const Status status = add_random({"activations", command.m, command.k, 1.0, kOutlier}, type,
                                     command.seed + kActivationsSeed, activations);
    if (!status.ok()) return refuse(status);
  }
  if (const Status status = write_both(command, weights, activations); !status.ok())
    return fail(status);
  talk(fmt::format("wrote {}: {}, N {}, K {}, {}", command.out, command.prefix, command.n,
                   command.k, name_of(command.type)));
  if (command.activations.empty()) return 0;
  talk(fmt::format("wrote {}: M {}, K {}", command.activations, command.m, command.k));
  return 0;
}

}  // namespace dualgemm::cli
