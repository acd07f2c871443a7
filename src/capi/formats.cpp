// NVFP4 data through the C interface: quantiser, scale layouts, converters.
#include "dualgemm/formats.hpp"

#include "capi/error.hpp"
#include "capi/structs.hpp"

using namespace dualgemm;        // NOLINT(google-build-using-namespace): the definitions of one
using namespace dualgemm::capi;  // NOLINT(google-build-using-namespace): C interface

dualgemm_status dualgemm_quantize_options_init(dualgemm_quantize_options* options,
                                               uint64_t struct_size) noexcept {
  return guarded([&] { return init_struct("options", options, struct_size); });
}

dualgemm_status dualgemm_quantize(const void* x, int32_t x_type, int64_t rows, int64_t cols,
                                  int64_t ldx, uint8_t* codes, int64_t ldc_bytes, uint8_t* scales,
                                  const dualgemm_quantize_options* options,
                                  float* global_scale) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_CAPI_TRY_VALUE(cpp_options, to_quantize_options(options));
    DUALGEMM_CAPI_TRY_VALUE(scale, quantize_nvfp4(x, static_cast<DataType>(x_type), rows, cols, ldx,
                                                  codes, ldc_bytes, scales, cpp_options));
    if (global_scale != nullptr) *global_scale = scale;
    return {};
  });
}

dualgemm_status dualgemm_dequantize(const uint8_t* codes, int64_t ldc_bytes, const uint8_t* scales,
                                    int32_t scale_layout, int64_t scale_ld, float global_scale,
                                    int64_t rows, int64_t cols, float* out,
                                    int64_t ld_out) noexcept {
  return guarded([&] {
    return dequantize_nvfp4(codes, ldc_bytes, scales, static_cast<ScaleLayout>(scale_layout),
                            scale_ld, global_scale, rows, cols, out, ld_out);
  });
}

dualgemm_status dualgemm_scale_span(int32_t scale_layout, int64_t rows, int64_t sf_cols, int64_t ld,
                                    int64_t* bytes) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(require(bytes, "bytes"));
    DUALGEMM_CAPI_TRY_VALUE(
        span, checked_scale_span(static_cast<ScaleLayout>(scale_layout), rows, sf_cols, ld));
    *bytes = span;
    return {};
  });
}

dualgemm_status dualgemm_convert_scales(const uint8_t* src, int32_t src_layout, int64_t src_ld,
                                        uint8_t* dst, int32_t dst_layout, int64_t dst_ld,
                                        int64_t rows, int64_t sf_cols, int64_t batches) noexcept {
  return guarded([&] {
    return convert_scale_layout(src, static_cast<ScaleLayout>(src_layout), src_ld, dst,
                                static_cast<ScaleLayout>(dst_layout), dst_ld, rows, sf_cols,
                                batches);
  });
}

dualgemm_status dualgemm_swap_nibbles(const uint8_t* src, uint8_t* dst, int64_t bytes) noexcept {
  return guarded([&] { return swap_nibbles(src, dst, bytes); });
}

dualgemm_status dualgemm_inspect_scales(const uint8_t* scales, int32_t scale_layout, int64_t rows,
                                        int64_t sf_cols, int64_t ld,
                                        dualgemm_scale_report* report) noexcept {
  return guarded([&]() -> Status {
    DUALGEMM_TRY(check_output_struct("report", report));
    DUALGEMM_CAPI_TRY_VALUE(
        found, inspect_scales(scales, static_cast<ScaleLayout>(scale_layout), rows, sf_cols, ld));
    write_struct(from_scale_report(found), report);
    return {};
  });
}

dualgemm_status dualgemm_experimental_from_ggml(const uint8_t* ggml_blocks, int64_t rows,
                                                int64_t cols, uint8_t* codes,
                                                uint8_t* scales) noexcept {
  return guarded([&] { return from_ggml_nvfp4(ggml_blocks, rows, cols, codes, scales); });
}

dualgemm_status dualgemm_experimental_to_ggml(const uint8_t* codes, const uint8_t* scales,
                                              int64_t rows, int64_t cols,
                                              uint8_t* ggml_blocks) noexcept {
  return guarded([&] { return to_ggml_nvfp4(codes, scales, rows, cols, ggml_blocks); });
}
