#include "case/draft_parameters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "case/parameter_uses.hpp"

namespace ptxsim {
namespace {

constexpr uint64_t kExampleCount = 65536;  // elements of a buffer
constexpr uint64_t kMapBytes = 128;        // CUtensorMap, "CUDA Driver API: Tensor Map Object"
constexpr uint64_t kMapAlignment = 64;

// The name of a type in a case: vectors by their elements, formats that a case has no name for by
// their bits.
std::string name_in_case(Type type) {
  switch (type) {
    case Type::kNone:
      return "u8";
    case Type::kB128:
      return "b64";
    case Type::kF16x2:
      return "f16";
    case Type::kBf16x2:
      return "bf16";
    case Type::kF32x2:
      return "f32";
    case Type::kF16:
    case Type::kBf16:
    case Type::kF32:
    case Type::kF64:
      return std::string(name_of(type));
    default:
      return is_float(type) || type > Type::kF64 ? fmt::format("b{}", 8 * bytes_of(type))
                                                 : std::string(name_of(type));
  }
}

// One half, as contents of a buffer that is read, or one, as the value of a scalar.
DraftJson example(Type type, bool half) {
  switch (type) {
    case Type::kF16:
    case Type::kF16x2:
      return half ? "0x3800" : "0x3c00";
    case Type::kBf16:
    case Type::kBf16x2:
      return half ? "0x3f00" : "0x3f80";
    case Type::kF32:
    case Type::kF32x2:
    case Type::kF64:
      return half ? DraftJson(0.5) : DraftJson(1.0);
    default:
      return half ? DraftJson(0) : DraftJson(1);
  }
}

// nvcc names parameters "<entry>_param_3".
std::string short_name(const Entry& entry, const Variable& variable) {
  if (!variable.name.starts_with(entry.name + "_param_")) return variable.name;
  return variable.name.substr(entry.name.size() + 1);
}

class Draft {
 public:
  explicit Draft(const Entry& entry) : entry_(entry) {}

  DraftParameters make() {
    const std::vector<ParameterUses> uses = parameter_uses(entry_);
    for (uint32_t p = 0; p < entry_.num_params; ++p) add(entry_.variables[p], uses[p]);
    return std::move(draft_);
  }

 private:
  void add(const Variable& variable, const ParameterUses& uses) {
    name_ = short_name(entry_, variable);
    begin_ = variable.offset;
    bytes_ = variable.bytes;
    at_ = 0;
    align_ = variable.alignment;
    const bool is_whole_map =
        bytes_ == kMapBytes && variable.alignment >= kMapAlignment && uses.fields.empty();
    std::vector<TensorMapUse> maps = uses.maps;
    if (is_whole_map && maps.empty()) maps.emplace_back();
    std::vector<ParameterField> fields = uses.fields;
    const bool is_scalar = bytes_ == bytes_of(variable.type) && bytes_ <= 8;
    const bool is_loaded_whole = fields.size() == 1 && bytes_of(fields[0].type) == bytes_;
    if (is_scalar && !is_loaded_whole) fields.assign(1, {.offset = 0, .type = variable.type});
    if (is_scalar && fields[0].type != variable.type && !is_float(fields[0].type))
      fields[0].type = variable.type;
    size_t map = 0;
    for (const ParameterField& field : fields) {
      for (; map < maps.size() && maps[map].offset <= field.offset; ++map) add_map(maps[map]);
      if (field.offset < at_) continue;  // inside a tensor map
      add_gap(field.offset);
      add_field(field);
    }
    for (; map < maps.size(); ++map) add_map(maps[map]);
    add_gap(bytes_);
  }

  std::string name_here(uint64_t offset, uint64_t bytes) const {
    return bytes == bytes_ ? name_ : fmt::format("{}_at_{}", name_, offset);
  }

  // The next item of the parameter, whose type aligns it to `natural` bytes.
  void push(DraftJson item, uint64_t bytes, uint64_t natural, const std::string& comment) {
    if (at_ == 0 && align_ > natural) item["align"] = align_;
    item["comment"] = comment;
    draft_.params.push_back(std::move(item));
    at_ += bytes;
  }

  void add_gap(uint64_t end) {
    while (at_ < end) {
      uint64_t unit = 8;
      while ((begin_ + at_) % unit != 0 || unit > end - at_) unit /= 2;
      uint64_t count = (end - at_) / unit;
      if (unit < 8 && (begin_ + at_ + unit) % (2 * unit) == 0) count = 1;  // up to a wider one
      const std::string comment = fmt::format("{}: bytes {} to {}, which no statement names", name_,
                                              at_, at_ + count * unit);
      push({{"type", fmt::format("u{}", 8 * unit)}, {"values", std::vector<int>(count, 0)}},
           count * unit, unit, comment);
    }
  }

  void add_field(const ParameterField& field) {
    const uint64_t bytes = bytes_of(field.type);
    const std::string name = name_here(field.offset, bytes);
    if (field.is_pointer && (begin_ + field.offset) % 8 == 0) return add_pointer(field, name);
    if ((begin_ + field.offset) % bytes != 0 || bytes > 8) return add_gap(field.offset + bytes);
    push({{"type", name_in_case(field.type)}, {"value", example(field.type, false)}}, bytes, bytes,
         "todo: the value of " + name);
  }

  void add_pointer(const ParameterField& field, const std::string& name) {
    add_buffer(name, field.element, field.is_read || !field.is_written, field.is_written,
               field.is_map                        ? "; it holds tensor maps"
               : field.is_read || field.is_written ? ""
                                                   : "; nothing is seen to go through it");
    push({{"buffer", name}}, 8, 8, name);
  }

  void add_buffer(const std::string& name, Type element, bool is_read, bool is_written,
                  const std::string& more) {
    DraftJson buffer{{"name", name}, {"type", name_in_case(element)}, {"count", kExampleCount}};
    if (is_read) buffer["fill"] = example(element, true);
    buffer["comment"] = fmt::format("todo: count{}{}{}", is_read ? ", contents" : "",
                                    is_written ? ", what to expect" : "", more);
    draft_.buffers.push_back(std::move(buffer));
  }

  // A map of bytes that the encoder accepts, of the rank that the copies have.
  void add_map(const TensorMapUse& use) {
    if (use.offset < at_ || use.offset + kMapBytes > bytes_) return;
    if ((begin_ + use.offset) % kMapAlignment != 0) return;
    add_gap(use.offset);
    static constexpr uint64_t kDims[] = {256, 64, 1, 1, 1}, kBox[] = {64, 8, 1, 1, 1};
    const uint32_t rank = use.rank == 0 ? 2 : use.rank;
    DraftJson dims = DraftJson::array(), box = DraftJson::array(), strides = DraftJson::array();
    uint64_t stride = 1;
    for (uint32_t i = 0; i < rank; ++i) {
      dims.push_back(kDims[i]);
      box.push_back(kBox[i]);
      stride *= kDims[i];
      if (i + 1 < rank) strides.push_back(stride);
    }
    const std::string name = name_here(use.offset, kMapBytes);
    add_buffer(name, Type::kU8, !use.is_written, use.is_written, "");
    DraftJson map{
        {"buffer", name}, {"data_type", "u8"}, {"dims", dims}, {"strides_bytes", strides}};
    map["swizzle"] = "none";
    if (use.mode == TensorMapMode::kTiled || rank < 3)
      map["box"] = box;
    else
      add_pixels(map, use.mode, rank);
    push({{"tensor_map", map}}, kMapBytes, kMapAlignment,
         "todo: as the host encodes it; only rank and mode are known" +
             std::string(use.rank == 0 ? ", and that only guessed" : ""));
  }

  // What stands in place of a box: the whole image.
  static void add_pixels(DraftJson& map, TensorMapMode mode, uint32_t rank) {
    const bool wide = mode == TensorMapMode::kIm2colWide;
    const DraftJson corner = wide ? DraftJson(0) : DraftJson(std::vector<int>(rank - 2));
    map[wide ? "im2col_wide" : "im2col"] = {
        {"lower", corner}, {"upper", corner}, {"channels", 64}, {"pixels", 128}};
    if (wide) map["swizzle"] = "64";
  }

  const Entry& entry_;
  DraftParameters draft_;
  std::string name_;                // of the parameter
  uint64_t begin_ = 0, bytes_ = 0;  // of the parameter
  uint64_t at_ = 0, align_ = 1;     // how far it is described; its alignment
};

}  // namespace

DraftParameters draft_parameters(const Entry& entry) { return Draft(entry).make(); }

}  // namespace ptxsim
