#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "checkpoint/tensor.hpp"

namespace dualgemm::checkpoint {
namespace {

// Levenshtein distance in O(|a|*|b|) time and O(|b|) memory, where a and b are what lies between
// the common beginning and end: names of one model share most of theirs.
size_t edit_distance(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty() && a.front() == b.front()) {
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  while (!a.empty() && !b.empty() && a.back() == b.back()) {
    a.remove_suffix(1);
    b.remove_suffix(1);
  }
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substitute = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substitute, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

constexpr size_t kLongestComparedName = 256;  // bounds the quadratic cost on hostile files
constexpr size_t kMostComparedNames = 100'000;

}  // namespace

std::vector<std::string> nearest_names(std::string_view wanted,
                                       std::span<const std::string_view> names, size_t count) {
  wanted = wanted.substr(0, kLongestComparedName);
  std::vector<std::pair<size_t, std::string_view>> best;  // sorted, at most `count`
  for (const std::string_view whole : names.first(std::min(names.size(), kMostComparedNames))) {
    const std::string_view name = whole.substr(0, kLongestComparedName);
    const size_t least =
        std::max(name.size(), wanted.size()) - std::min(name.size(), wanted.size());
    if (count == 0 || (best.size() == count && least > best.back().first)) continue;
    const std::pair ranked(edit_distance(wanted, name), whole);
    best.insert(std::upper_bound(best.begin(), best.end(), ranked), ranked);
    if (best.size() > count) best.pop_back();
  }
  std::vector<std::string> nearest;
  for (const auto& [distance, name] : best)
    nearest.emplace_back(name.substr(0, kLongestComparedName));
  return nearest;
}

const TensorView* TensorFile::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

Expected<TensorView> TensorFile::get(std::string_view name) const {
  if (const TensorView* tensor = find(name)) return *tensor;
  std::vector<std::string_view> names;
  for (const auto& [key, tensor] : tensors_) names.push_back(key);
  const std::vector<std::string> near = nearest_names(name, names);
  return Status::error(StatusCode::kNotFound, std::string(name),
                       fmt::format("not among the {} tensors of {}", names.size(), origin_),
                       near.empty() ? std::string("must be the name of a tensor in the file")
                                    : fmt::format("nearest names: {}", fmt::join(near, ", ")));
}

Expected<TensorView> TensorFile::get_or_only(const std::string& name) const {
  if (!name.empty()) return get(name);
  if (tensors_.size() == 1) return tensors_.begin()->second;
  std::vector<std::string_view> first;
  for (const auto& [key, tensor] : tensors_) {
    if (first.size() < 8) first.push_back(key);
  }
  return Status::invalid(
      origin_, fmt::format("{} tensors", tensors_.size()),
      fmt::format("must hold exactly one tensor unless a name is given ({}{})",
                  fmt::join(first, ", "), tensors_.size() > first.size() ? ", ..." : ""));
}

Status TensorFile::add(TensorView tensor, std::shared_ptr<const void> owner) {
  const Expected<int64_t> bytes = checked_bytes(tensor.dtype, tensor.shape, tensor.name);
  if (!bytes) return bytes.status();
  if (static_cast<uint64_t>(*bytes) != tensor.data.size()) {
    return Status::invalid(tensor.name, fmt::format("{} bytes", tensor.data.size()),
                           fmt::format("shape {} of {} needs {}", format_shape(tensor.shape),
                                       name_of(tensor.dtype), *bytes));
  }
  const std::string name = tensor.name;
  if (!tensors_.emplace(name, std::move(tensor)).second) {
    return Status::invalid(name, "added twice", "tensor names must be unique");
  }
  if (owner) owners_.push_back(std::move(owner));
  return {};
}

Status TensorFile::add(std::string name, ElementType dtype, std::vector<int64_t> shape,
                       std::vector<std::byte> data) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(data));
  const std::span<const std::byte> view(*owner);
  return add({std::move(name), dtype, std::move(shape), view}, std::move(owner));
}

Status TensorFile::add_copy(std::string name, ElementType dtype, std::vector<int64_t> shape,
                            const void* data, size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  return add(std::move(name), dtype, std::move(shape), std::vector<std::byte>(bytes, bytes + size));
}

void TensorFile::erase(std::string_view name) {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) tensors_.erase(found);
}

void TensorFile::share_memory_of(const TensorFile& other) {
  owners_.insert(owners_.end(), other.owners_.begin(), other.owners_.end());
}

}  // namespace dualgemm::checkpoint
