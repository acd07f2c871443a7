// Random bytes as the C structs, struct_size among them; pointers become null or point to memory
// that is large enough for what they promise.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/enum_table.hpp"
#include "dualgemm/dualgemm.h"

namespace {

using namespace dualgemm;  // NOLINT(google-build-using-namespace)

constexpr int64_t kArenaBytes = 1 << 14;
constexpr int64_t kMaxWork = 1 << 18;  // m * n * k * l

void require(bool condition) {
  if (!condition) std::abort();
}

// Every status must be the recorded one, with a text.
dualgemm_status checked(dualgemm_status status) {
  require(status >= DUALGEMM_OK && status < DUALGEMM_INTERNAL);
  require(dualgemm_last_status() == status);
  require(dualgemm_last_error_message()[0] != '\0');
  require((std::strcmp(dualgemm_last_error_message(), "ok") == 0) == (status == DUALGEMM_OK));
  require((dualgemm_last_error_rule()[0] == '\0') == (status == DUALGEMM_OK));
  return status;
}

// A struct at the end of its own allocation of exactly struct_size bytes, or of 8 bytes when that
// is no size of the struct: reading on is a find.
template <class T>
class Struct {
 public:
  explicit Struct(FuzzedDataProvider& data, uint64_t minimum) {
    const uint64_t wild = data.ConsumeIntegral<uint64_t>();
    const bool plausible = data.ConsumeIntegralInRange(0, 15) != 0;
    const uint64_t near = minimum + 8 * (wild % ((sizeof(T) - minimum) / 8 + 3));
    const uint64_t size = plausible ? (wild >> 60 != 0 ? sizeof(T) : near) : wild;
    const bool legal = size >= minimum && size <= 4096 && size % 8 == 0;
    bytes_ = legal ? static_cast<size_t>(size) : sizeof(uint64_t);
    memory_ = static_cast<unsigned char*>(std::calloc(1, std::max(bytes_, sizeof(uint64_t))));
    std::memcpy(memory_, &size, sizeof size);
  }
  ~Struct() { std::free(memory_); }
  Struct(const Struct&) = delete;
  Struct& operator=(const Struct&) = delete;

  T* get() const { return reinterpret_cast<T*>(memory_); }
  // Puts the fields of `value` after struct_size that the allocation has room for.
  void fill(const T& value) {
    const size_t known = std::min(bytes_, sizeof(T));
    std::memcpy(memory_ + 8, reinterpret_cast<const unsigned char*>(&value) + 8, known - 8);
  }
  // Random bytes over what this library knows, and sometimes beyond.
  void scribble(FuzzedDataProvider& data, size_t from) {
    const size_t to = data.ConsumeIntegralInRange(0, 7) == 0 ? bytes_ : std::min(bytes_, sizeof(T));
    if (from >= to) return;
    const std::vector<uint8_t> noise = data.ConsumeBytes<uint8_t>(to - from);
    std::copy(noise.begin(), noise.end(), memory_ + from);
  }
  // A pointer at `offset`, where the allocation has room for it.
  void point(size_t offset, const void* to) {
    if (offset + sizeof to <= bytes_) std::memcpy(memory_ + offset, &to, sizeof to);
  }

 private:
  size_t bytes_;
  unsigned char* memory_;
};

template <class Enum>
int32_t enumerator(FuzzedDataProvider& data) {
  return data.ConsumeIntegralInRange(0, core::kEnumCount<Enum> - 1);
}

dualgemm_matrix matrix(FuzzedDataProvider& data) {
  return {enumerator<DataType>(data),
          enumerator<ScaleLayout>(data),
          data.ConsumeBool() ? 0 : data.ConsumeIntegralInRange(0, 300),
          0,
          0,
          0};
}

dualgemm_problem problem(FuzzedDataProvider& data) {
  dualgemm_problem out;
  dualgemm_problem_init(&out, sizeof out);
  out.m = data.ConsumeIntegralInRange(0, 40);
  out.n = data.ConsumeIntegralInRange(0, 40);
  out.k = 16 * data.ConsumeIntegralInRange(0, 8);
  out.l = data.ConsumeIntegralInRange(0, 3);
  out.a = matrix(data);
  out.gate.scale_layout = enumerator<ScaleLayout>(data);
  out.up.scale_layout = enumerator<ScaleLayout>(data);
  out.d = matrix(data);
  out.act.kind = enumerator<ActivationKind>(data);
  for (float* parameter : {&out.act.alpha, &out.act.beta, &out.act.limit}) {
    if (data.ConsumeIntegralInRange(0, 3) == 0) *parameter = data.ConsumeFloatingPoint<float>();
  }
  out.grouping = enumerator<Grouping>(data);
  out.batch_invariant = data.ConsumeIntegralInRange(0, 1);
  if (data.ConsumeBool()) out.bias = data.ConsumeIntegralInRange(-1, 3);
  if (data.ConsumeIntegralInRange(0, 3) == 0) {
    const dualgemm_activation act = out.act;
    dualgemm_problem_init(&out, sizeof out);
    out.m = 7;
    out.n = 16;
    out.k = 32;
    out.combine = enumerator<Combine>(data);
    out.up_column = data.ConsumeIntegralInRange(-1, 17);
    out.residual = data.ConsumeIntegralInRange(-1, 2);
    out.bias = enumerator<BiasType>(data);
    out.bias_stride = data.ConsumeIntegralInRange(-1, 40);
    if (data.ConsumeBool()) out.act = act;
  }
  return out;
}

// Memory that any buffer of a small problem fits into; inputs may share it.
struct Arena {
  alignas(64) uint8_t inputs[kArenaBytes];
  alignas(64) uint8_t d[kArenaBytes];
  alignas(64) uint8_t d_scales[kArenaBytes];
  int32_t offsets[256];
  int32_t rows[256];
};

dualgemm_buffers buffers(FuzzedDataProvider& data, Arena& arena,
                         const dualgemm_prepared* prepared) {
  const auto input = [&]() -> const uint8_t* {
    return data.ConsumeIntegralInRange(0, 31) == 0 ? nullptr : arena.inputs;
  };
  const auto some = [&](const auto* pointer) { return data.ConsumeBool() ? pointer : nullptr; };
  dualgemm_buffers out;
  dualgemm_buffers_init(&out, sizeof out);
  out.a = input();
  out.a_scales = some(arena.inputs);
  out.a_row_scale = some(reinterpret_cast<const float*>(arena.inputs));
  out.gate = input();
  out.gate_scales = input();
  out.up = input();
  out.up_scales = input();
  out.alpha_gate = data.ConsumeFloatingPoint<float>();
  out.alpha_gate_per_batch = some(reinterpret_cast<const float*>(arena.inputs));
  out.expert_offsets = some(arena.offsets);
  out.expert_rows = some(arena.rows);
  out.d = data.ConsumeIntegralInRange(0, 31) == 0 ? arena.inputs : arena.d;
  out.d_scales = data.ConsumeBool() ? arena.d_scales : nullptr;
  out.d_global_scale = data.ConsumeBool() ? 1.0f : data.ConsumeFloatingPoint<float>();
  out.prepared = some(prepared);
  out.bias_gate = some(arena.inputs);
  out.bias_up = some(arena.inputs);
  if (data.ConsumeIntegralInRange(0, 3) == 0)
    out.residual = data.ConsumeBool() ? arena.inputs : arena.d;
  if (data.ConsumeIntegralInRange(0, 7) == 0) {
    out.expert_offsets = nullptr;
    out.row_experts = arena.rows;
  }
  return out;
}

// A handle's own bytes with a descriptor that may say something else of them.
dualgemm_prepared_view view_of(FuzzedDataProvider& data, const dualgemm_prepared* prepared) {
  dualgemm_prepared_view view{};
  if (prepared == nullptr) return view;
  require(checked(dualgemm_prepared_get_view(prepared, &view)) == DUALGEMM_OK);
  dualgemm_prepared_descriptor& d = view.descriptor;
  for (int64_t* number : {&d.n, &d.k, &d.l, &d.expert_bytes, &d.bytes, &d.alignment, &d.columns}) {
    if (data.ConsumeIntegralInRange(0, 15) == 0) *number = data.ConsumeIntegral<int64_t>();
  }
  for (int32_t* number : {&d.format, &d.version}) {
    if (data.ConsumeIntegralInRange(0, 15) == 0) *number = data.ConsumeIntegralInRange(-1, 10);
  }
  if (data.ConsumeIntegralInRange(0, 15) == 0)
    view.bytes = data.ConsumeIntegralInRange<int64_t>(-1, view.bytes);
  return view;
}

// Bytes that say that they are prepared weights.
void open_prepared_bytes(FuzzedDataProvider& data, const dualgemm_prepared_view& good) {
  if (good.memory == nullptr) return;
  const auto* const from = static_cast<const uint8_t*>(good.memory);
  std::vector<uint8_t> bytes(from, from + good.bytes);
  for (int i = data.ConsumeIntegralInRange(0, 3); i > 0; --i) {
    const size_t last = std::min<size_t>(bytes.size(), 48) - 1;
    bytes[data.ConsumeIntegralInRange<size_t>(0, last)] = data.ConsumeIntegral<uint8_t>();
  }
  bytes.resize(data.ConsumeIntegralInRange<size_t>(0, bytes.size()));
  bytes.shrink_to_fit();  // so that reading beyond them is seen
  dualgemm_prepared_view view{}, some{};
  const auto size = static_cast<int64_t>(bytes.size());
  if (checked(dualgemm_prepared_open(bytes.data(), size, &view)) != DUALGEMM_OK) return;
  require(view.descriptor.bytes == size && view.descriptor.l >= 1);
  const auto first = data.ConsumeIntegral<int64_t>(), count = data.ConsumeIntegral<int64_t>();
  if (checked(dualgemm_prepared_experts(&view, first, count, &some)) != DUALGEMM_OK) return;
  require(first >= 0 && count >= 1 && some.descriptor.l == count && some.bytes <= view.bytes);
}

// The same bytes as the handle's into as much memory as that takes, or nothing into less.
void prepare_into_memory(FuzzedDataProvider& data, const dualgemm_plan* plan,
                         const dualgemm_buffers* operands, const dualgemm_prepared* prepared) {
  dualgemm_prepared_view of_handle{};
  require(checked(dualgemm_prepared_get_view(prepared, &of_handle)) == DUALGEMM_OK);
  const int64_t needed = of_handle.descriptor.bytes;
  const bool enough = data.ConsumeBool();
  const int64_t bytes = enough ? needed : data.ConsumeIntegralInRange<int64_t>(0, needed - 1);
  void* memory = nullptr;
  require(posix_memalign(&memory, 64, static_cast<size_t>(bytes)) == 0);
  const bool made = checked(dualgemm_prepare_into(plan, operands, memory, bytes)) == DUALGEMM_OK;
  require(made == enough);
  if (made) require(std::memcmp(memory, of_handle.memory, static_cast<size_t>(needed)) == 0);
  std::free(memory);
}

// Legal groups for the problem, as far as its own fields are legal.
void fill_groups(FuzzedDataProvider& data, Arena& arena, int64_t m, int64_t l) {
  int64_t at = 0;
  arena.offsets[0] = 0;
  for (int64_t e = 0; e < l; ++e) {
    at = e + 1 == l ? m : at + data.ConsumeIntegralInRange<int64_t>(0, m - at);
    arena.offsets[e + 1] = static_cast<int32_t>(at);
    arena.rows[e] = data.ConsumeIntegralInRange(-1, static_cast<int32_t>(m));
  }
}

// Whether the arena holds every operand of the problem as the library reads the struct.
bool fits(const dualgemm_problem* problem) {
  dualgemm_operand_bytes sizes{};
  sizes.struct_size = sizeof sizes;
  if (checked(dualgemm_operand_sizes(problem, &sizes)) != DUALGEMM_OK) return false;
  for (int64_t bytes :
       {sizes.a, sizes.a_scales, sizes.gate, sizes.gate_scales, sizes.up, sizes.up_scales, sizes.d,
        sizes.d_scales, sizes.a_row_scale, sizes.bias_gate, sizes.bias_up}) {
    if (bytes < 0 || bytes > kArenaBytes) return false;
  }
  const int64_t l = problem->struct_size > offsetof(dualgemm_problem, l) ? problem->l : 1;
  return l < 255 && problem->m < 1024 && problem->n < 1024 &&
         problem->m * problem->n * problem->k * l < kMaxWork;
}

void read_texts(FuzzedDataProvider& data, const dualgemm_plan* plan) {
  for (const auto text : {dualgemm_plan_config, dualgemm_plan_explain}) {
    size_t required = 0;
    require(checked(text(plan, nullptr, 0, &required)) == DUALGEMM_OK && required > 1);
    const size_t capacity = data.ConsumeIntegralInRange<size_t>(0, required + 4);
    std::vector<char> copy(capacity + 1, 'x');  // data() of an empty vector may be null
    const dualgemm_status status = checked(text(plan, copy.data(), capacity, nullptr));
    require((status == DUALGEMM_OK) == (capacity >= required));
    require(copy[capacity] == 'x');
    if (status == DUALGEMM_OK) require(std::strlen(copy.data()) + 1 == required);
  }
}

void plan_and_run(FuzzedDataProvider& data, Arena& arena, const dualgemm_problem* problem,
                  const dualgemm_plan_options* options) {
  dualgemm_plan* plan = nullptr;
  const dualgemm_status status = checked(dualgemm_plan_create(problem, options, &plan));
  require((status == DUALGEMM_OK) == (plan != nullptr));
  const bool runnable = fits(problem);
  Struct<dualgemm_run_info> info(data, 16);
  Struct<dualgemm_plan_info> plan_info(data, 16);
  Struct<dualgemm_buffers> c_buffers(data, offsetof(dualgemm_buffers, d_scales));
  dualgemm_prepared* prepared = nullptr;
  dualgemm_prepared_view view{};
  dualgemm_run_info* const some_info = data.ConsumeBool() ? info.get() : nullptr;
  if (runnable) {
    const int64_t l = problem->struct_size > offsetof(dualgemm_problem, l) ? problem->l : 1;
    fill_groups(data, arena, problem->m, l);
    c_buffers.fill(buffers(data, arena, nullptr));
    if (plan != nullptr) checked(dualgemm_prepare(plan, c_buffers.get(), &prepared));
    if (prepared != nullptr) prepare_into_memory(data, plan, c_buffers.get(), prepared);
    view = view_of(data, prepared);
    dualgemm_buffers filled = buffers(data, arena, prepared);
    if (data.ConsumeIntegralInRange(0, 3) == 0) filled.prepared_view = &view;
    c_buffers.fill(filled);
    checked(dualgemm_validate(problem, c_buffers.get()));
    checked(dualgemm_run_once(problem, c_buffers.get(), options, some_info));
  }
  if (plan != nullptr) {
    int64_t bytes = -1;
    require(checked(dualgemm_plan_workspace_size(plan, &bytes)) == DUALGEMM_OK && bytes >= 0);
    checked(dualgemm_plan_get_info(plan, plan_info.get()));
    read_texts(data, plan);
    if (runnable) {
      void* workspace = nullptr;
      require(posix_memalign(&workspace, 64, static_cast<size_t>(bytes) + 1) == 0);
      checked(dualgemm_run(plan, c_buffers.get(), workspace, bytes, some_info));
      checked(dualgemm_run(plan, c_buffers.get(), workspace, bytes - 1, some_info));
      std::free(workspace);
      dualgemm_workspace* owned = nullptr;
      require(checked(dualgemm_workspace_create(plan, &owned)) == DUALGEMM_OK);
      require(dualgemm_workspace_size(owned) == bytes);
      checked(dualgemm_run(plan, c_buffers.get(), dualgemm_workspace_data(owned),
                           dualgemm_workspace_size(owned), some_info));
      dualgemm_workspace_destroy(owned);
    }
  }
  if (prepared != nullptr) {
    int64_t bytes = -1;
    require(checked(dualgemm_prepared_size(prepared, &bytes)) == DUALGEMM_OK && bytes >= 0);
    require(checked(dualgemm_prepared_get_view(prepared, &view)) == DUALGEMM_OK);
    open_prepared_bytes(data, view);
  }
  dualgemm_prepared_destroy(prepared);
  dualgemm_plan_destroy(plan);
}

int64_t number(FuzzedDataProvider& data) {
  if (data.ConsumeIntegralInRange(0, 7) == 0) return data.ConsumeIntegral<int64_t>();
  return data.ConsumeIntegralInRange<int64_t>(-1, 150);
}

// Extents are believed only when the span that they lead to fits the arena.
void formats(FuzzedDataProvider& data, Arena& arena) {
  const int64_t rows = number(data), sf_cols = number(data), ld = number(data);
  const int32_t layout = data.ConsumeIntegralInRange(-1, core::kEnumCount<ScaleLayout>),
                other = data.ConsumeIntegralInRange(-1, core::kEnumCount<ScaleLayout>);
  int64_t span = -1, other_span = -1;
  const bool ok = checked(dualgemm_scale_span(layout, rows, sf_cols, ld, &span)) == DUALGEMM_OK;
  const bool other_ok =
      checked(dualgemm_scale_span(other, rows, sf_cols, 0, &other_span)) == DUALGEMM_OK;
  const bool in_arena = ok && other_ok && span <= kArenaBytes && other_span <= kArenaBytes;
  uint8_t* const source = in_arena ? arena.inputs : nullptr;
  uint8_t* const target = in_arena ? arena.d : nullptr;
  Struct<dualgemm_scale_report> report(data, 16);
  checked(dualgemm_convert_scales(source, layout, ld, target, other, 0, rows, sf_cols, 1));
  checked(dualgemm_inspect_scales(source, layout, rows, sf_cols, ld, report.get()));
  const int64_t bytes = number(data);
  checked(dualgemm_swap_nibbles(bytes <= kArenaBytes ? arena.inputs : nullptr, arena.d, bytes));

  const int64_t cols = number(data), ldx = data.ConsumeBool() ? 0 : number(data);
  const bool small = rows <= 64 && cols <= 64 && ldx <= 64;
  Struct<dualgemm_quantize_options> options(data, 16);
  options.scribble(data, 8);
  uint64_t claimed = 0;
  std::memcpy(&claimed, options.get(), sizeof claimed);
  // scale_ld is the last field; where it exists and is wild, no memory is large enough.
  const bool has_scale_ld = claimed > offsetof(dualgemm_quantize_options, scale_ld) &&
                            claimed <= 4096 && claimed % 8 == 0;
  const int64_t scale_ld = has_scale_ld ? options.get()->scale_ld : 0;
  const bool believable = small && scale_ld <= 64;
  float global = 0.0f;
  const int32_t type = data.ConsumeIntegralInRange(-1, core::kEnumCount<DataType>);
  checked(dualgemm_quantize(believable ? arena.inputs : nullptr, type, rows, cols, ldx,
                            believable ? arena.d : nullptr, 0, arena.d_scales,
                            data.ConsumeBool() ? options.get() : nullptr, &global));
  const bool small_codes = rows <= 32 && cols <= 64 && layout == DUALGEMM_SCALES_LINEAR;
  checked(dualgemm_dequantize(small_codes ? arena.inputs : nullptr, 0, arena.inputs, layout, 0,
                              global, rows, cols, reinterpret_cast<float*>(arena.d), 0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  FuzzedDataProvider data(bytes, size);
  static Arena arena;
  for (uint8_t& byte : arena.inputs) byte = static_cast<uint8_t>(byte * 5 + 17);
  Struct<dualgemm_problem> c_problem(data, offsetof(dualgemm_problem, l));
  Struct<dualgemm_plan_options> c_options(data, 16);
  c_problem.fill(problem(data));
  if (data.ConsumeIntegralInRange(0, 3) == 0) {
    c_problem.scribble(data, data.ConsumeIntegralInRange<size_t>(8, sizeof(dualgemm_problem)));
  }
  if (data.ConsumeBool()) c_options.scribble(data, 8);
  const std::string config = data.ConsumeRandomLengthString(80);
  c_options.point(offsetof(dualgemm_plan_options, config),
                  data.ConsumeBool() ? config.c_str() : nullptr);
  checked(dualgemm_validate(c_problem.get(), nullptr));
  plan_and_run(data, arena, c_problem.get(), data.ConsumeBool() ? c_options.get() : nullptr);
  formats(data, arena);
  return 0;
}
