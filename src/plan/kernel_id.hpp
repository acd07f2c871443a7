// The kernels that a plan may name. A name may be that of several, of which each has its problems:
// --config and Plan::kernel have names, everything else compares ids.
#pragma once

#include <cstdint>
#include <string>

#include "dualgemm/types.hpp"

// X(enumerator, name as plans say it). A new kernel of src/cuda gets a row here and one in
// src/cuda/families.cpp.
#define DUALGEMM_KERNEL_IDS(X)                   \
  X(kNone, "")                                   \
  X(kCublasLt, "cublaslt")                       \
  X(kCutlass, "cutlass")                         \
  X(kCutlassVisitor, "cutlassvisitor")           \
  X(kSm80, "mma")                                \
  X(kSm90a, "wgmma")                             \
  X(kSm90aSkinny, "skinny")                      \
  X(kSm100a, "tcgen05")                          \
  X(kSm100aPair, "tcgen05pair")                  \
  X(kSm100aPairPersistent, "tcgen05persistent")  \
  X(kSm100aPairGroups, "tcgen05persistent")      \
  X(kSm100aSkinny, "skinny")                     \
  X(kSm100aSkinnyPersistent, "skinnypersistent") \
  X(kSm100aSkinnyGroups, "skinny")               \
  X(kSm100aW4a16, "w4a16")                       \
  X(kSm100aW4a16Persistent, "w4a16persistent")   \
  X(kSm100aW4a16Groups, "w4a16")                 \
  X(kSm120a, "mmanvf4")

namespace dualgemm {

#define DUALGEMM_KERNEL_ID(enumerator, name) enumerator,
enum class KernelId : int32_t { DUALGEMM_KERNEL_IDS(DUALGEMM_KERNEL_ID) };
#undef DUALGEMM_KERNEL_ID

namespace plan {

const char* kernel_name(KernelId id) noexcept;

// The kernels of one name, which a caller demands; without a name: all.
class NamedKernels {
 public:
  NamedKernels() = default;
  NamedKernels(std::string name);  // NOLINT(google-explicit-constructor): a name says it all
  NamedKernels(const char* name) : NamedKernels(std::string(name)) {}  // NOLINT

  const std::string& name() const noexcept { return name_; }  // legal or not
  bool any() const noexcept { return name_.empty(); }
  bool contains(KernelId id) const noexcept {
    return any() || (ids_ >> static_cast<int32_t>(id) & 1) != 0;
  }
  bool operator==(const NamedKernels&) const = default;

 private:
  std::string name_;
  uint64_t ids_ = 0;  // a bit for each KernelId
};

// Both what a plan holds and what it prints.
void set_kernel(Plan& plan, KernelId id);

}  // namespace plan
}  // namespace dualgemm
