#include "fake_cuda/blas/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "number/formats.hpp"

namespace ptxsim::cuda::blas {
namespace {

double decoded(Type type, const std::byte* at) {
  const auto as = [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (type) {
    case Type::kF64:
      return as(double{});
    case Type::kF32:
      return static_cast<double>(as(float{}));
    case Type::kF16:
      return static_cast<double>(f16_to_float(as(uint16_t{})));
    case Type::kI32:
      return as(int32_t{});
    case Type::kBf16:
      return static_cast<double>(bf16_to_float(as(uint16_t{})));
  }
  return 0;
}

void encode_to(Type type, double value, std::byte* at) {
  const auto put = [&](auto encoded) { std::memcpy(at, &encoded, sizeof encoded); };
  switch (type) {
    case Type::kF64:
      return put(value);
    case Type::kF32:
      return put(static_cast<float>(value));
    case Type::kF16:
      return put(static_cast<uint16_t>(encode(Format::kF16, value, Rounding::kNearestEven)));
    case Type::kI32:
      return put(static_cast<int32_t>(value));
    case Type::kBf16:
      return put(static_cast<uint16_t>(encode(Format::kBf16, value, Rounding::kNearestEven)));
  }
}

// Lines are what lies together: columns, or rows with row_major.
uint64_t num_lines(const Matrix& m) { return m.row_major ? m.rows : m.columns; }
uint64_t line_length(const Matrix& m) { return m.row_major ? m.columns : m.rows; }

const std::byte* begin_of(const Matrix& matrix, uint64_t batch) {
  if (matrix.is_array) return static_cast<const std::byte*>(matrix.begins[batch]);
  return static_cast<const std::byte*>(matrix.begin) +
         static_cast<int64_t>(batch) * matrix.batch_stride *
             static_cast<int64_t>(bytes_of(matrix.type));
}

std::string text_of(const Matrix& m, uint64_t batch) {
  return fmt::format("{} ({} x {}, leading dimension {}, batch {})", m.name, m.rows, m.columns,
                     m.ld, batch);
}

// One batch of a matrix.
struct Lines {
  std::byte* begin = nullptr;
  std::vector<bool>* written = nullptr;  // of the whole buffer; nullptr: it is not kept
  uint64_t offset = 0;                   // of `begin` in the buffer
  std::string buffer;
};

Lines lines_of(Session& session, const Matrix& matrix, uint64_t batch) {
  const std::byte* begin = begin_of(matrix, batch);
  const uint64_t step = bytes_of(matrix.type);
  const auto address = reinterpret_cast<uint64_t>(begin);
  const uint64_t bytes =
      ((num_lines(matrix) - 1) * static_cast<uint64_t>(matrix.ld) + line_length(matrix)) * step;
  if (address % step != 0)
    throw BlasFault{kMisalignedAddress, fmt::format("{} at 0x{:x}; its elements have {} bytes",
                                                    text_of(matrix, batch), address, step)};
  Location location;
  const Status status = session.memory.locate(begin, bytes, location);
  if (status == kSuccess && location.allocation == nullptr && matrix.may_be_of_host)
    return {const_cast<std::byte*>(begin), nullptr, 0, "the host's memory"};
  if (status != kSuccess || location.allocation == nullptr)
    throw BlasFault{kIllegalAddress,
                    fmt::format("{} takes {} bytes at 0x{:x}, which are not inside one allocation "
                                "of memory that the GPU sees",
                                text_of(matrix, batch), bytes, address)};
  GlobalBuffer& buffer = session.memory.buffer_of(*location.allocation);
  if (location.allocation->host != nullptr)
    return {location.allocation->host + location.offset, nullptr, 0, buffer.name};
  return {buffer.data.data() + location.offset, buffer.written.empty() ? nullptr : &buffer.written,
          location.offset, buffer.name};
}

// f(the bytes of a line, its offset in the buffer, its index)
template <class F>
void for_lines(const Matrix& matrix, const Lines& lines, F&& f) {
  const uint64_t step = static_cast<uint64_t>(matrix.ld) * bytes_of(matrix.type);
  for (uint64_t i = 0; i < num_lines(matrix); ++i)
    f(lines.begin + i * step, static_cast<ptrdiff_t>(lines.offset + i * step), i);
}

// `bytes` of a line, of which the first is byte `offset` of its buffer, were written.
void check_written(Session& session, const Matrix& matrix, uint64_t batch, const Lines& lines,
                   ptrdiff_t offset, uint64_t bytes) {
  if (!session.settings.options.check_uninitialized || lines.written == nullptr) return;
  const auto begin = lines.written->begin() + offset;
  const auto end = begin + static_cast<ptrdiff_t>(bytes);
  const auto unwritten = std::find(begin, end, false);
  if (unwritten == end) return;
  throw BlasFault{kLaunchFailed,
                  fmt::format("{}: byte {} of {} was never written", text_of(matrix, batch),
                              unwritten - lines.written->begin(), lines.buffer)};
}

// Where the element lies in a vector that goes column by column.
uint64_t index_of(const Matrix& matrix, uint64_t line, uint64_t at) {
  return matrix.row_major ? at * matrix.rows + line : line * matrix.rows + at;
}

}  // namespace

std::vector<double> read(Session& session, const Matrix& matrix, uint64_t batch) {
  std::vector<double> values(matrix.rows * matrix.columns);
  if (values.empty()) return values;
  const Lines lines = lines_of(session, matrix, batch);
  const uint64_t step = bytes_of(matrix.type), length = line_length(matrix);
  for_lines(matrix, lines, [&](const std::byte* line, ptrdiff_t offset, uint64_t i) {
    check_written(session, matrix, batch, lines, offset, length * step);
    for (uint64_t at = 0; at < length; ++at)
      values[index_of(matrix, i, at)] = decoded(matrix.type, line + at * step);
  });
  return values;
}

void write(Session& session, const Matrix& matrix, uint64_t batch,
           const std::vector<double>& values) {
  if (values.empty()) return;
  const Lines lines = lines_of(session, matrix, batch);
  const uint64_t step = bytes_of(matrix.type), length = line_length(matrix);
  for_lines(matrix, lines, [&](std::byte* line, ptrdiff_t offset, uint64_t i) {
    for (uint64_t at = 0; at < length; ++at)
      encode_to(matrix.type, values[index_of(matrix, i, at)], line + at * step);
    if (lines.written != nullptr) std::fill_n(lines.written->begin() + offset, length * step, true);
  });
}

void read_addresses(Session& session, Matrix& matrix, uint64_t batches) {
  static_assert(sizeof(void*) == 8);
  const std::string name = std::string("addresses of ") + matrix.name;
  const Matrix array = {name.c_str(), Type::kF64,  // of 8 bytes each
                        matrix.begin, batches,    1, static_cast<int64_t>(batches)};
  const Lines lines = lines_of(session, array, 0);
  check_written(session, array, 0, lines, static_cast<ptrdiff_t>(lines.offset), batches * 8);
  matrix.begins.resize(batches);
  std::memcpy(matrix.begins.data(), lines.begin, batches * 8);
}

double read_scale(Session& session, const Scale& scale, Type type, const char* name) {
  if (scale.mode == kOfHost) return decoded(type, static_cast<const std::byte*>(scale.at));
  return read(session, {name, type, scale.at, 1, 1, 1, false, 0}, 0)[0];
}

double rounded(Type type, double value) {
  std::byte bytes[8];
  encode_to(type, value, bytes);
  return decoded(type, bytes);
}

void add_ranges(const Matrix& matrix, uint64_t batches, std::vector<MemoryRange>& ranges) {
  if (matrix.rows == 0 || matrix.columns == 0) return;
  const uint64_t step = bytes_of(matrix.type);
  for (uint64_t batch = 0; batch < batches; ++batch)
    for (uint64_t i = 0; i < num_lines(matrix); ++i)
      ranges.push_back({begin_of(matrix, batch) + i * static_cast<uint64_t>(matrix.ld) * step,
                        line_length(matrix) * step});
}

}  // namespace ptxsim::cuda::blas
