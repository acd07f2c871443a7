#include "checkpoint/gguf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/checkpoint_tensors.hpp"
#include "checkpoint/corrupt.hpp"
#include "checkpoint/guard.hpp"
#include "checkpoint/json_events.hpp"

namespace dualgemm::checkpoint {
namespace {

constexpr uint32_t kDefaultAlignment = 32;
constexpr uint32_t kMostExtents = 4;
constexpr uint64_t kLongestName = 1 << 16;

// ggml's types: `values` neighbours, a ggml block, take `bytes`. Those with an
// element are read as such.
struct GgmlType {
  uint32_t id;
  const char* name;
  int64_t values, bytes;
  std::optional<ElementType> element;
};
constexpr uint32_t kNvfp4 = 40;
const std::array kGgmlTypes = {
    GgmlType{0, "F32", 1, 4, ElementType::kF32},
    GgmlType{1, "F16", 1, 2, ElementType::kF16},
    GgmlType{2, "Q4_0", 32, 18, {}},
    GgmlType{3, "Q4_1", 32, 20, {}},
    GgmlType{6, "Q5_0", 32, 22, {}},
    GgmlType{7, "Q5_1", 32, 24, {}},
    GgmlType{8, "Q8_0", 32, 34, {}},
    GgmlType{10, "Q2_K", 256, 84, {}},
    GgmlType{11, "Q3_K", 256, 110, {}},
    GgmlType{12, "Q4_K", 256, 144, {}},
    GgmlType{13, "Q5_K", 256, 176, {}},
    GgmlType{14, "Q6_K", 256, 210, {}},
    GgmlType{16, "IQ2_XXS", 256, 66, {}},
    GgmlType{17, "IQ2_XS", 256, 74, {}},
    GgmlType{18, "IQ3_XXS", 256, 98, {}},
    GgmlType{19, "IQ1_S", 256, 50, {}},
    GgmlType{20, "IQ4_NL", 32, 18, {}},
    GgmlType{21, "IQ3_S", 256, 110, {}},
    GgmlType{22, "IQ2_S", 256, 82, {}},
    GgmlType{23, "IQ4_XS", 256, 136, {}},
    GgmlType{24, "I8", 1, 1, ElementType::kI8},
    GgmlType{25, "I16", 1, 2, ElementType::kI16},
    GgmlType{26, "I32", 1, 4, ElementType::kI32},
    GgmlType{27, "I64", 1, 8, ElementType::kI64},
    GgmlType{28, "F64", 1, 8, ElementType::kF64},
    GgmlType{29, "IQ1_M", 256, 56, {}},
    GgmlType{30, "BF16", 1, 2, ElementType::kBF16},
    GgmlType{34, "TQ1_0", 256, 54, {}},
    GgmlType{35, "TQ2_0", 256, 66, {}},
    GgmlType{39, "MXFP4", 32, 17, {}},
    GgmlType{kNvfp4, "NVFP4", kGgmlBlockValues, kGgmlBlockBytes, ElementType::kU8},
};

const GgmlType* type_of(uint32_t id) {
  const auto found = std::find_if(kGgmlTypes.begin(), kGgmlTypes.end(),
                                  [id](const GgmlType& type) { return type.id == id; });
  return found == kGgmlTypes.end() ? nullptr : &*found;
}

// Reads forward; past the end every read gives 0 and `failed` is set, so that one check a record
// suffices.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T number() {
    T value{};
    const std::span<const std::byte> bytes = take(sizeof(T));
    if (bytes.size() == sizeof(T)) std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }
  std::string text() {
    const auto length = number<uint64_t>();
    if (length > kLongestText) failed_ = true;
    const std::span<const std::byte> bytes = take(length);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  void skip(uint64_t count) { take(count); }
  bool failed() const { return failed_; }
  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }

 private:
  static constexpr uint64_t kLongestText = uint64_t{1} << 30;  // chat templates are long
  std::span<const std::byte> take(uint64_t count) {
    if (failed_ || count > left()) {
      failed_ = true;
      return {};
    }
    const std::span<const std::byte> bytes = bytes_.subspan(position_, count);
    position_ += count;
    return bytes;
  }

  std::span<const std::byte> bytes_;
  size_t position_ = 0;
  bool failed_ = false;
};

// Bytes of a value of one of GGUF's scalar types; 0: text, array or unknown.
uint64_t bytes_of_value(uint32_t type) {
  constexpr std::array<uint64_t, 13> kBytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < kBytes.size() ? kBytes[type] : 0;
}
constexpr uint32_t kUint16Value = 2, kUint32Value = 4, kInt32Value = 5, kTextValue = 8,
                   kArrayValue = 9;

constexpr std::string_view kAlignmentKey = "general.alignment", kSplitNumberKey = "split.no",
                           kSplitCountKey = "split.count", kSplitTensorsKey = "split.tensors.count";

bool is_kept_text(std::string_view key) {
  return key == "general.architecture" || key == "general.name";
}

class Parser {
 public:
  Parser(std::span<const std::byte> file, const std::string& origin)
      : file_(file), origin_(origin), cursor_(file) {
    result_.set_origin(origin);
  }

  Expected<TensorFile> parse() {
    DUALGEMM_TRY(read_header());
    for (uint64_t i = 0; i < pairs_; ++i) DUALGEMM_TRY(read_pair(i));
    for (uint64_t i = 0; i < tensors_; ++i) DUALGEMM_TRY(read_info(i));
    const size_t past = cursor_.position() % alignment_;
    cursor_.skip(past == 0 || infos_.empty() ? 0 : alignment_ - past);
    if (cursor_.failed()) return truncated("the data");
    data_ = file_.subspan(cursor_.position());
    DUALGEMM_TRY(check_places());
    for (const Info& info : infos_) DUALGEMM_TRY(add(info));
    result_.metadata()[kFormatKey] = kFormatGguf;
    split_.tensors_here = infos_.size();
    return std::move(result_);
  }
  GgufSplit split() const { return split_; }

 private:
  struct Info {
    std::string name;
    std::vector<int64_t> shape;  // row-major, values
    uint32_t type_id = 0;
    uint64_t offset = 0, size = 0;  // size 0: of an unknown type
  };

  Status truncated(const std::string& where) const {
    return corrupt(fmt::format("{}, {}", origin_, where),
                   fmt::format("the file ends, or a length points past its {} bytes", file_.size()),
                   "must be a whole GGUF file");
  }

  Status read_header() {
    cursor_.skip(4);  // the magic, which decided that this is GGUF
    const auto version = cursor_.number<uint32_t>();
    tensors_ = cursor_.number<uint64_t>();
    pairs_ = cursor_.number<uint64_t>();
    if (cursor_.failed() || std::memcmp(file_.data(), "GGUF", 4) != 0) return truncated("header");
    if (version != 2 && version != 3) {
      const bool swapped = (version & 0xFFFF) == 0;
      return Status::unsupported(
          origin_, swapped ? std::string("big-endian GGUF") : fmt::format("GGUF {}", version),
          "must be little-endian, version 2 or 3");
    }
    // An info takes at least 24 bytes, a pair 13: counts beyond that are lies.
    if (tensors_ > file_.size() / 24 || pairs_ > file_.size() / 13) {
      return corrupt(origin_ + ", header",
                     fmt::format("{} tensors and {} key-value pairs", tensors_, pairs_),
                     fmt::format("do not fit in {} bytes", file_.size()));
    }
    return {};
  }

  Status wrong_pair(const std::string& key, std::string observed, std::string rule) const {
    return corrupt(fmt::format("{}, key {}", origin_, printable(key)), std::move(observed),
                   std::move(rule));
  }

  Status read_pair(uint64_t index) {
    const std::string key = cursor_.text();
    const auto type = cursor_.number<uint32_t>();
    if (!cursor_.failed()) {
      if (!keys_.insert(key).second) return wrong_pair(key, "appears twice", "keys must be unique");
      DUALGEMM_TRY(check_type(key, type));
    }
    if (type == kTextValue) {
      const std::string value = cursor_.text();
      if (is_kept_text(key)) result_.metadata()[key] = value.substr(0, kLongestName);
    } else if (type == kArrayValue) {
      DUALGEMM_TRY(skip_array(key));
    } else if (key == kAlignmentKey) {
      alignment_ = cursor_.number<uint32_t>();
      if (!cursor_.failed() && !std::has_single_bit(alignment_))
        return wrong_pair(key, fmt::format("{}", alignment_), "must be a power of two");
    } else if (key == kSplitNumberKey) {
      split_.number = cursor_.number<uint16_t>();
    } else if (key == kSplitCountKey) {
      split_.count = cursor_.number<uint16_t>();
    } else if (key == kSplitTensorsKey) {
      const auto tensors = cursor_.number<int32_t>();
      if (tensors < 0) return wrong_pair(key, fmt::format("{}", tensors), "must not be negative");
      split_.tensors = static_cast<uint64_t>(tensors);
    } else {
      const uint64_t size = bytes_of_value(type);
      if (!cursor_.failed() && size == 0) return unknown_type(key, type);
      cursor_.skip(size);
    }
    return cursor_.failed() ? truncated(fmt::format("key-value pair {}", index)) : Status();
  }

  Status unknown_type(const std::string& key, uint32_t type) const {
    return wrong_pair(key, fmt::format("value type {}", type),
                      "must be one of GGUF's, arrays not nested");
  }

  // A key that is used has the type that GGUF gives it: another one would be read as if the key
  // were not there.
  Status check_type(const std::string& key, uint32_t type) const {
    const auto check = [&](uint32_t wanted, const char* name) {
      if (type == wanted) return Status();
      return wrong_pair(key, fmt::format("value type {}", type),
                        fmt::format("must be {} ({})", name, wanted));
    };
    if (key == kAlignmentKey) return check(kUint32Value, "uint32");
    if (key == kSplitNumberKey || key == kSplitCountKey) return check(kUint16Value, "uint16");
    if (key == kSplitTensorsKey) return check(kInt32Value, "int32");
    return is_kept_text(key) ? check(kTextValue, "a string") : Status();
  }

  Status skip_array(const std::string& key) {
    const auto of = cursor_.number<uint32_t>();
    const auto count = cursor_.number<uint64_t>();
    if (of == kTextValue) {
      for (uint64_t i = 0; i < count && !cursor_.failed(); ++i)
        cursor_.skip(cursor_.number<uint64_t>());
      return {};
    }
    const uint64_t each = bytes_of_value(of);
    if (!cursor_.failed() && each == 0) return unknown_type(key, of);
    uint64_t size = 0;
    const bool overflow = __builtin_mul_overflow(each, count, &size);
    cursor_.skip(overflow ? UINT64_MAX : size);
    return {};
  }

  Status read_info(uint64_t index) {
    Info info;
    info.name = cursor_.text();
    const auto rank = cursor_.number<uint32_t>();
    if (!cursor_.failed() && (rank > kMostExtents || info.name.size() > kLongestName ||
                              has_control_characters(info.name))) {
      return corrupt(fmt::format("{}, tensor {}", origin_, printable(info.name)),
                     fmt::format("{} extents, a name of {} bytes", rank, info.name.size()),
                     "at most 4 extents and a printable name");
    }
    std::vector<uint64_t> extents;
    for (uint32_t i = 0; i < rank && !cursor_.failed(); ++i)
      extents.push_back(cursor_.number<uint64_t>());
    info.type_id = cursor_.number<uint32_t>();
    info.offset = cursor_.number<uint64_t>();
    if (cursor_.failed()) return truncated(fmt::format("tensor {}", index));
    if (!names_.insert(info.name).second) {
      return corrupt(fmt::format("{}, tensor {}", origin_, printable(info.name)), "appears twice",
                     "names must be unique");
    }
    return measure(extents, std::move(info));
  }

  // Size in bytes, with overflow checks.
  Status measure(const std::vector<uint64_t>& extents, Info info) {
    const std::string where = fmt::format("{}, tensor {}", origin_, printable(info.name));
    uint64_t values = 1;
    for (const uint64_t extent : extents) {
      if (__builtin_mul_overflow(values, extent, &values) || extent > INT64_MAX / 8 ||
          values > INT64_MAX / 8) {
        return corrupt(where, fmt::format("extents {}", fmt::join(extents, " x ")),
                       "their product must fit in 60 bits");
      }
    }
    info.shape.assign(extents.rbegin(), extents.rend());
    if (const GgmlType* type = type_of(info.type_id)) {
      const auto together = static_cast<uint64_t>(type->values);
      const uint64_t row = extents.empty() ? 1 : extents[0];
      if (row % together != 0) {
        return corrupt(where, fmt::format("rows of {} values", row),
                       fmt::format("{} needs a multiple of {}", type->name, together));
      }
      if (__builtin_mul_overflow(values / together, static_cast<uint64_t>(type->bytes),
                                 &info.size)) {
        return corrupt(where, fmt::format("{} values", values), "its size must fit in 64 bits");
      }
    }
    infos_.push_back(std::move(info));
    return {};
  }

  Status check_places() const {
    std::vector<const Info*> order;
    for (const Info& info : infos_) order.push_back(&info);
    std::stable_sort(order.begin(), order.end(),
                     [](const Info* a, const Info* b) { return a->offset < b->offset; });
    uint64_t end = 0;
    for (const Info* info : order) {
      const std::string where = fmt::format("{}, tensor {}", origin_, printable(info->name));
      if (info->offset % alignment_ != 0 || info->offset < end) {
        return corrupt(where, fmt::format("starts at byte {} of the data", info->offset),
                       fmt::format("must be a multiple of {} and not before {}", alignment_, end));
      }
      if (info->offset > data_.size() || info->size > data_.size() - info->offset) {
        return corrupt(where, fmt::format("{} bytes from {} on", info->size, info->offset),
                       fmt::format("the file has {} bytes of data", data_.size()));
      }
      end = info->offset + info->size;
    }
    return {};
  }

  Status add(const Info& info) {
    const GgmlType* type = type_of(info.type_id);
    if (type == nullptr || !type->element) {
      result_.leave_out(fmt::format(
          "{} ({})", info.name,
          type != nullptr ? std::string(type->name) : fmt::format("type {}", info.type_id)));
      return {};
    }
    std::vector<int64_t> shape = info.shape;
    if (info.type_id == kNvfp4 && !shape.empty())
      shape.back() = shape.back() / kGgmlBlockValues * kGgmlBlockBytes;
    return result_.add(
        {info.name, *type->element, std::move(shape), data_.subspan(info.offset, info.size)});
  }

  std::span<const std::byte> file_, data_;
  const std::string& origin_;
  Cursor cursor_;
  uint64_t tensors_ = 0, pairs_ = 0;
  uint32_t alignment_ = kDefaultAlignment;
  std::set<std::string> names_, keys_;
  std::vector<Info> infos_;
  GgufSplit split_;
  TensorFile result_;
};

}  // namespace

Expected<TensorFile> parse_gguf(std::span<const std::byte> file, const std::string& origin,
                                GgufSplit* split) {
  return guarded(origin, [&] {
    Parser parser(file, origin);
    Expected<TensorFile> parsed = parser.parse();
    if (split != nullptr) *split = parser.split();
    return parsed;
  });
}

}  // namespace dualgemm::checkpoint
