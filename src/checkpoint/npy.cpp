#include "checkpoint/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "checkpoint/atomic_file.hpp"
#include "checkpoint/corrupt.hpp"
#include "checkpoint/guard.hpp"
#include "checkpoint/json_events.hpp"
#include "checkpoint/mapped_file.hpp"
#include "checkpoint/npy_header.hpp"

namespace dualgemm::checkpoint {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeaderBytes =
    1 << 20;                       // versions 2 and 3 allow 4 GiB, real headers are below 1 KiB
constexpr size_t kAlignment = 64;  // of the data in files written here, as NumPy does

struct TypeName {
  const char* numpy;  // without byte order
  ElementType type;
};
constexpr TypeName kTypeNames[] = {
    {"b1", ElementType::kBool}, {"u1", ElementType::kU8},  {"i1", ElementType::kI8},
    {"u2", ElementType::kU16},  {"i2", ElementType::kI16}, {"f2", ElementType::kF16},
    {"u4", ElementType::kU32},  {"i4", ElementType::kI32}, {"f4", ElementType::kF32},
    {"u8", ElementType::kU64},  {"i8", ElementType::kI64}, {"f8", ElementType::kF64},
    {"c8", ElementType::kC64}};

constexpr const char* kU2IsBf16 = "; if it is bf16, say so with --u2-is-bf16 (run, verify)";

Expected<ElementType> type_of(const std::string& descr, const NpyOptions& options,
                              const std::string& origin) {
  if (descr.starts_with('>')) {
    return Status::unsupported(origin, "big-endian dtype " + printable(descr),
                               "must be little-endian: save x.astype(x.dtype.newbyteorder('<'))");
  }
  const std::string name =
      descr.substr(!descr.empty() && std::string_view("<|=").find(descr[0]) != descr.npos ? 1 : 0);
  if (name == "V2" && options.u2_is_bf16) return ElementType::kBF16;  // as ml_dtypes saves it
  for (const TypeName& known : kTypeNames) {
    if (name != known.numpy) continue;
    const bool as_bf16 = known.type == ElementType::kU16 && options.u2_is_bf16;
    return as_bf16 ? ElementType::kBF16 : known.type;
  }
  const std::string rule = "must be b1, c8, f2, f4, f8, i1 to i8 or u1 to u8";
  return Status::unsupported(origin, "dtype " + printable(descr),
                             name == "V2" ? rule + kU2IsBf16 : rule);
}

struct Prefix {
  size_t header_begin, header_size;
};

Expected<Prefix> read_prefix(std::span<const std::byte> file, const std::string& origin) {
  if (file.size() < 10 || std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0) {
    return corrupt(origin, "no NPY magic", "a .npy file starts with \\x93NUMPY and its version");
  }
  const int major = std::to_integer<int>(file[6]), minor = std::to_integer<int>(file[7]);
  if (major < 1 || major > 3 || minor != 0) {
    return Status::unsupported(origin, fmt::format("version {}.{}", major, minor),
                               "must be 1.0, 2.0 or 3.0");
  }
  Prefix prefix{10, load_element<uint16_t>(file.subspan(8), 0)};
  if (major > 1) {
    if (file.size() < 12) return corrupt(origin, "12 bytes missing", "must hold a header length");
    prefix = {12, load_element<uint32_t>(file.subspan(8), 0)};
  }
  if (prefix.header_size > kMaxHeaderBytes) {
    return corrupt(origin, fmt::format("header of {} bytes", prefix.header_size),
                   fmt::format("must be at most {}", kMaxHeaderBytes));
  }
  if (prefix.header_size > file.size() - prefix.header_begin) {
    return corrupt(
        origin, fmt::format("header of {} bytes in a file of {}", prefix.header_size, file.size()),
        "the header must lie inside the file");
  }
  return prefix;
}

std::string stem_of(const std::string& path) {
  const size_t begin = path.rfind('/') + 1;  // npos + 1 = 0
  const size_t dot = path.rfind('.');
  return path.substr(begin, dot == path.npos || dot <= begin ? path.npos : dot - begin);
}

Expected<std::string> descr_for(const TensorView& tensor) {
  for (const TypeName& known : kTypeNames) {
    if (known.type == tensor.dtype) {
      return fmt::format("{}{}", bits_of(tensor.dtype) == 8 ? '|' : '<', known.numpy);
    }
  }
  switch (bits_of(tensor.dtype)) {
    case 16:
      return std::string("<u2");
    case 8:
    case 4:
      return std::string("|u1");
    default:
      return Status::unsupported(tensor.name, std::string("dtype ") + name_of(tensor.dtype),
                                 "cannot be stored as .npy");
  }
}

Expected<std::string> make_preamble(const TensorView& tensor) {
  const Expected<std::string> descr = descr_for(tensor);
  if (!descr) return descr.status();
  std::vector<int64_t> shape = tensor.shape;
  if (bits_of(tensor.dtype) == 4) {
    if (shape.empty() || shape.back() % 2 != 0) {
      return Status::invalid(tensor.name, "shape " + format_shape(shape),
                             "the last extent of F4 must be even: two values lie in a byte");
    }
    shape.back() /= 2;
  }
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   *descr, fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  const size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header += '\n';
  if (header.size() > 0xFFFF) {
    return Status::invalid(tensor.name, fmt::format("{} extents", shape.size()),
                           "the header must fit in 64 KiB");
  }
  std::string preamble(kMagic);
  preamble += {'\x01', '\x00', static_cast<char>(header.size() & 0xFF),
               static_cast<char>(header.size() >> 8)};
  return preamble + header;
}

}  // namespace

Expected<TensorView> parse_npy(std::span<const std::byte> file, const std::string& origin,
                               const NpyOptions& options) {
  return guarded(origin, [&]() -> Expected<TensorView> {
    const Expected<Prefix> prefix = read_prefix(file, origin);
    if (!prefix) return prefix.status();
    const char* text = reinterpret_cast<const char*>(file.data()) + prefix->header_begin;
    Expected<NpyHeader> header = parse_npy_header({text, prefix->header_size}, origin);
    if (!header) return header.status();
    if (header->fortran_order && header->shape.size() > 1) {
      return Status::unsupported(origin, "Fortran order",
                                 "must be C order: save numpy.ascontiguousarray(x)");
    }
    const Expected<ElementType> type = type_of(header->descr, options, origin);
    if (!type) return type.status();
    const Expected<int64_t> needed = checked_bytes(*type, header->shape, origin);
    if (!needed) return corrupt(origin, needed.status().observed(), needed.status().rule());
    const std::span<const std::byte> data =
        file.subspan(prefix->header_begin + prefix->header_size);
    if (data.size() != static_cast<uint64_t>(*needed)) {
      return corrupt(origin, fmt::format("{} bytes of data", data.size()),
                     fmt::format("shape {} of {} needs {}", format_shape(header->shape),
                                 name_of(*type), *needed));
    }
    return TensorView{stem_of(origin), *type, std::move(header->shape), data};
  });
}

Expected<TensorFile> open_npy(const std::string& path, const NpyOptions& options) {
  Expected<std::shared_ptr<const MappedFile>> mapped = MappedFile::open(path);
  if (!mapped) return mapped.status();
  Expected<TensorView> tensor = parse_npy((*mapped)->bytes(), path, options);
  if (!tensor) return tensor.status();
  return guarded(path, [&]() -> Expected<TensorFile> {
    TensorFile file;
    file.set_origin(path);
    file.add_path(path);
    DUALGEMM_TRY(file.add(*std::move(tensor), *mapped));
    return file;
  });
}

Status write_npy(AtomicFile& out, const TensorView& tensor) {
  return guarded(out.path(), [&]() -> Status {
    const Expected<int64_t> bytes = checked_bytes(tensor.dtype, tensor.shape, tensor.name);
    if (!bytes) return bytes.status();
    if (tensor.data.size() != static_cast<uint64_t>(*bytes)) {
      return Status::invalid(tensor.name, fmt::format("{} bytes", tensor.data.size()),
                             fmt::format("its shape needs {}", *bytes));
    }
    const Expected<std::string> preamble = make_preamble(tensor);
    if (!preamble) return preamble.status();
    DUALGEMM_TRY(out.write(preamble->data(), preamble->size()));
    return out.write(tensor.data);
  });
}

Status write_npy(const std::string& path, const TensorView& tensor) {
  return guarded(path, [&]() -> Status {
    Expected<AtomicFile> out = AtomicFile::create(path);
    if (!out) return out.status();
    DUALGEMM_TRY(write_npy(*out, tensor));
    return out->commit();
  });
}

}  // namespace dualgemm::checkpoint
