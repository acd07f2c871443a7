// NEON parts shared by the engines beside this file; included inside their namespaces.

constexpr int kLanes = 4;  // columns of a vector
constexpr int kPanelVectors = kPanelN / kLanes;

// Activation of the engines for NVFP4, per block: height x 16 signed bytes in the nibble order,
// height x FP32 scale/4.
constexpr int kRowBlockBytes = 20;

inline int8x16_t load_bytes(const uint8_t* at) { return vreinterpretq_s8_u8(vld1q_u8(at)); }
inline float load_float(const uint8_t* at) {
  float value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}

// Twice the value of every E2M1 code.
constexpr int8_t kDoubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

inline int8x16_t doubled(uint8x16_t nibbles) { return vqtbl1q_s8(vld1q_s8(kDoubled), nibbles); }
inline int8x16_t low_nibbles(uint8x16_t codes) {
  return doubled(vandq_u8(codes, vdupq_n_u8(0x0F)));
}
inline int8x16_t high_nibbles(uint8x16_t codes) { return doubled(vshrq_n_u8(codes, 4)); }

// FP32 scales of block `block` (0 .. 3) of 4 columns: dword c holds 4 E4M3 bytes. Subnormals go
// through an integer conversion, so that flushing to zero does not matter; 0x7F and 0xFF become
// NaN, the sign is ignored.
inline float32x4_t decode_scales(const uint8_t* dwords, int block) {
  const uint32x4_t x = vreinterpretq_u32_u8(vld1q_u8(dwords));
  const uint32x4_t b = vandq_u32(vshlq_u32(x, vdupq_n_s32(-8 * block)), vdupq_n_u32(0x7F));
  const uint32x4_t normal = vaddq_u32(vshlq_n_u32(b, 20), vdupq_n_u32(120u << 23));
  const float32x4_t subnormal = vmulq_n_f32(vcvtq_f32_u32(b), 0x1p-9f);
  const uint32x4_t bits =
      vbslq_u32(vcltq_u32(b, vdupq_n_u32(8)), vreinterpretq_u32_f32(subnormal), normal);
  return vreinterpretq_f32_u32(vorrq_u32(bits, vceqq_u32(b, vdupq_n_u32(0x7F))));
}
