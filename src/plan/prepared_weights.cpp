#include "plan/prepared_bytes.hpp"
#include "plan/strategy.hpp"

namespace dualgemm {

PreparedWeights::PreparedWeights() noexcept = default;
PreparedWeights::PreparedWeights(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
PreparedWeights::~PreparedWeights() = default;
PreparedWeights::PreparedWeights(PreparedWeights&&) noexcept = default;
PreparedWeights& PreparedWeights::operator=(PreparedWeights&&) noexcept = default;

bool PreparedWeights::empty() const noexcept { return impl_ == nullptr; }
int64_t PreparedWeights::size_bytes() const noexcept {
  return impl_ ? impl_->view.descriptor.bytes : 0;
}
PreparedView PreparedWeights::view() const noexcept { return impl_ ? impl_->view : PreparedView{}; }

}  // namespace dualgemm
