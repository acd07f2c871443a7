#include "checkpoint/quantization_scheme.hpp"

#include <fmt/format.h>

#include <array>

namespace dualgemm::checkpoint {
namespace {

constexpr std::array kFormatNames = {"float", "nvfp4", "mxfp4", "fp8", "mxfp8", "other"};
constexpr std::array kGranularityNames = {"", "tensor", "channel", "block", "group"};
constexpr std::array kActivationNames = {"none", "static", "dynamic", "local"};

}  // namespace

const char* name_of(LinearFormat format) noexcept {
  return kFormatNames[static_cast<size_t>(format)];
}
const char* name_of(Granularity granularity) noexcept {
  return kGranularityNames[static_cast<size_t>(granularity)];
}
const char* name_of(ActivationScheme scheme) noexcept {
  return kActivationNames[static_cast<size_t>(scheme)];
}

std::string text_of(const LinearScheme& scheme) {
  switch (scheme.format) {
    case LinearFormat::kFloat:
      return "float";
    case LinearFormat::kNvfp4:
      return "NVFP4";
    case LinearFormat::kMxfp4:
      return "MXFP4";
    case LinearFormat::kMxfp8:
      return "MXFP8";
    case LinearFormat::kFp8:
      return scheme.granularity == Granularity::kBlock
                 ? fmt::format("FP8 block {} x {}", scheme.rows, scheme.cols)
                 : fmt::format("FP8 {}", name_of(scheme.granularity));
    case LinearFormat::kOther:
      break;
  }
  return scheme.description;
}

bool agree(const LinearScheme& one, const LinearScheme& other) noexcept {
  if (one.format != other.format) return false;
  if (one.format == LinearFormat::kOther) return true;  // two programs name it differently
  if (one.format != LinearFormat::kFp8) return true;    // the format says the granularity
  return one.granularity == other.granularity &&
         (one.granularity != Granularity::kBlock ||
          (one.rows == other.rows && one.cols == other.cols));
}

}  // namespace dualgemm::checkpoint
