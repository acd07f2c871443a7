// Named tensors as files hold them: what a reader returns and a writer takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

// Extents of a tensor, at most: NumPy's limit. Bounds what a header can make a reader allocate.
inline constexpr size_t kMaxRank = 64;

// Element types of the safetensors format. kF4 is two E2M1 values a byte. The library computes with
// few of them; the others are read, checked and copied, so that a checkpoint with an exotic tensor
// in it can still be converted.
enum class ElementType : int32_t {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kU16,
  kI16,
  kF16,
  kBF16,
  kU32,
  kI32,
  kF32,
  kU64,
  kI64,
  kF64,
  kC64,
};

// As safetensors spells them: "F8_E4M3", "BF16", ...; never null.
const char* name_of(ElementType type) noexcept;
// The error lists the legal names.
Expected<ElementType> parse_element_type(std::string_view name);
int bits_of(ElementType type) noexcept;

// "[4096, 3584]"; "[]" for a scalar.
std::string format_shape(std::span<const int64_t> shape);

// Extents must be >= 0; their product and the size in bits must fit in 63 bits. Elements of 4 and 6
// bits must fill whole bytes.
Expected<int64_t> checked_elements(std::span<const int64_t> shape, const std::string& tensor);
Expected<int64_t> checked_bytes(ElementType type, std::span<const int64_t> shape,
                                const std::string& tensor);

// A tensor somebody else owns. `data` may lie at any address: files do not promise alignment, so
// read elements with load_element() or ask for aligned_bytes().
struct TensorView {
  std::string name;
  ElementType dtype = ElementType::kU8;
  std::vector<int64_t> shape;  // row-major, empty = scalar
  std::span<const std::byte> data;

  // Precondition: the shape was checked. The extents beside one of 0 may multiply to anything.
  int64_t elements() const noexcept {
    int64_t count = 1;
    for (const int64_t extent : shape) {
      if (extent == 0) return 0;
    }
    for (const int64_t extent : shape) count *= extent;
    return count;
  }
  std::span<const uint8_t> bytes() const noexcept {
    return {reinterpret_cast<const uint8_t*>(data.data()), data.size()};
  }
};

// Element `index` of unaligned data. Precondition: (index + 1) * sizeof(T) <= data.size().
template <class T>
T load_element(std::span<const std::byte> data, int64_t index) noexcept {
  T value;
  std::memcpy(&value, data.data() + index * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

// kF16, kBF16, kF32 or kF64 (rounded to nearest) -> FP32; any other type is kUnsupported.
Expected<std::vector<float>> decode_to_f32(const TensorView& tensor);

// A set of tensors, unique and sorted by name, that keeps alive whatever its views point into.
// Copies are cheap and share the memory. Not thread-safe while being changed.
class TensorFile {
 public:
  // By extension, then by content: .safetensors, .gguf, .npy (one tensor, named by the file's
  // stem), a sharded checkpoint's *.safetensors.index.json, or a directory holding one of these.
  static Expected<TensorFile> open(const std::string& path);

  const std::map<std::string, TensorView, std::less<>>& tensors() const noexcept {
    return tensors_;
  }
  const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
  std::map<std::string, std::string>& metadata() noexcept { return metadata_; }
  // For messages: the path it was opened from, or what set_origin() said.
  const std::string& origin() const noexcept { return origin_; }
  void set_origin(std::string origin) { origin_ = std::move(origin); }
  // Every file that it was read from; empty for tensors in memory.
  const std::vector<std::string>& paths() const noexcept { return paths_; }
  void add_path(std::string path) { paths_.push_back(std::move(path)); }
  // What the file holds besides and no reader here understands: "NAME (TYPE)".
  const std::vector<std::string>& left_out() const noexcept { return left_out_; }
  void leave_out(std::string tensor) { left_out_.push_back(std::move(tensor)); }

  bool contains(std::string_view name) const { return tensors_.find(name) != tensors_.end(); }
  // Null when missing.
  const TensorView* find(std::string_view name) const;
  // kNotFound when missing; the rule lists the nearest names that do exist.
  Expected<TensorView> get(std::string_view name) const;
  // The only tensor of the file, or `name` when it is not empty. The error lists the names.
  Expected<TensorView> get_or_only(const std::string& name) const;

  // An existing name, a bad shape or a byte count that contradicts it is an error.
  Status add(TensorView tensor, std::shared_ptr<const void> owner = nullptr);
  Status add(std::string name, ElementType dtype, std::vector<int64_t> shape,
             std::vector<std::byte> data);
  // Copies `size` bytes.
  Status add_copy(std::string name, ElementType dtype, std::vector<int64_t> shape, const void* data,
                  size_t size);
  void erase(std::string_view name);
  // Holds `owner` as long as this file or a copy of it lives.
  void keep_alive(std::shared_ptr<const void> owner) { owners_.push_back(std::move(owner)); }
  // Keeps alive all that `other` keeps alive, so that its views may be added here.
  void share_memory_of(const TensorFile& other);

 private:
  std::map<std::string, TensorView, std::less<>> tensors_;
  std::map<std::string, std::string> metadata_;
  std::string origin_ = "tensors in memory";
  std::vector<std::shared_ptr<const void>> owners_;
  std::vector<std::string> paths_, left_out_;
};

// At most `count` of `names` by edit distance to `wanted`, nearest first.
std::vector<std::string> nearest_names(std::string_view wanted,
                                       std::span<const std::string_view> names, size_t count = 3);

}  // namespace dualgemm::checkpoint
