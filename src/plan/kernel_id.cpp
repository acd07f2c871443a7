#include "plan/kernel_id.hpp"

#include <cstddef>
#include <iterator>
#include <utility>

namespace dualgemm::plan {
namespace {

#define DUALGEMM_KERNEL_NAME(enumerator, name) name,
constexpr const char* kNames[] = {DUALGEMM_KERNEL_IDS(DUALGEMM_KERNEL_NAME)};
#undef DUALGEMM_KERNEL_NAME
static_assert(std::size(kNames) <= 64, "NamedKernels has a bit for each");

}  // namespace

const char* kernel_name(KernelId id) noexcept {
  const auto index = static_cast<size_t>(id);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

NamedKernels::NamedKernels(std::string name) : name_(std::move(name)) {
  for (size_t i = 1; i < std::size(kNames); ++i) {
    if (name_ == kNames[i]) ids_ |= uint64_t{1} << i;
  }
}

void set_kernel(Plan& plan, KernelId id) {
  plan.kernel_id = id;
  plan.kernel = kernel_name(id);
}

}  // namespace dualgemm::plan
