// The descriptors that CuTe builds, as numbers: its own code, given shared addresses on the host.
#pragma once

#include <cstddef>
#include <cstdint>

// CuTe turns a pointer to shared memory into its address with this function of the device; here the
// pointer is one.
inline size_t __cvta_generic_to_shared(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}
#define CUTE_CVTA_GENERIC_TO_SHARED_ACTIVATED 1

#include "cute/atom/copy_traits_sm100.hpp"
#include "cute/atom/mma_atom.hpp"
#include "cute/atom/mma_traits_sm100.hpp"
#include "cute/atom/mma_traits_sm90_gmma.hpp"
#include "cute/tensor.hpp"
#include "cutlass/detail/sm100_blockscaled_layout.hpp"

namespace cutlass_case {

using Code = cutlass::float_e2m1_t;
using Scale = cutlass::float_ue4m3_t;
using ScaleConfig = cutlass::detail::Sm1xxBlockScaledConfig<16>;
inline constexpr auto kKMajor = cute::UMMA::Major::K;

template <class T>
auto shared_pointer(uint32_t address) {
  return cute::make_smem_ptr(cute::recast_ptr<T>(reinterpret_cast<void*>(uintptr_t{address})));
}

// Rows x 256 codes with the 128-byte swizzle: what the MMA of step `step` (K = 64) gets.
template <int Rows>
uint64_t cute_rows_descriptor(uint32_t address, int step) {
  using namespace cute;
  const auto layout = tile_to_shape(UMMA::Layout_K_SW128_Atom<Code>{}, Shape<Int<Rows>, _256>{});
  const auto steps =
      flat_divide(make_tensor(shared_pointer<Code>(address), layout), Shape<Int<Rows>, _64>{});
  return UMMA::make_umma_desc<kKMajor>(steps(_, _, 0, step));
}

// Rows x 64 F16 with the 128-byte swizzle: what wgmma of step `step` (K = 16) gets.
template <int Rows>
uint64_t cute_wgmma_descriptor(uint32_t address, int step) {
  using namespace cute;
  const auto layout =
      tile_to_shape(SM90::GMMA::Layout_K_SW128_Atom<half_t>{}, Shape<Int<Rows>, _64>{});
  const auto steps =
      flat_divide(make_tensor(shared_pointer<half_t>(address), layout), Shape<Int<Rows>, _16>{});
  return SM90::GMMA::make_gmma_desc<SM90::GMMA::Major::K>(steps(_, _, 0, step));
}

template <int N>
using Nvfp4Mma = decltype(cute::make_tiled_mma(
    cute::SM100_MMA_MXF4_SS<Code, Code, float, Scale, 128, N, 16, kKMajor, kKMajor>{}));

struct ScaleCopy {
  uint64_t descriptor;  // of the scale tile in shared memory
  uint32_t tmem_col;    // from the operand's first scale column
};

// How CUTLASS copies the scales of rows 0..127 and K = 64 * step .. of a stage of 256 into TMEM.
inline ScaleCopy cute_scale_copy(uint32_t address, int step) {
  using namespace cute;
  using Mma = Nvfp4Mma<128>;
  using Op = SM100_UTCCP_4x32dp128bit_1cta;
  using Tile = Shape<_128, _128, _256>;
  const auto shared_layout = filter_zeros(ScaleConfig::deduce_smem_layoutSFA(Mma{}, Tile{}));
  auto tmem = make_tensor<typename Mma::FrgTypeSFA>(
      shape(ScaleConfig::deduce_smem_layoutSFA(Mma{}, Tile{})));
  const auto compact = make_tensor(tmem.data(), filter_zeros(tmem.layout()));
  const auto copy = make_utccp_copy(Op{}, compact).get_slice(0);
  const auto source = copy.partition_S(make_tensor(shared_pointer<Scale>(address), shared_layout));
  const auto descriptors = get_utccp_smem_desc_tensor<Op>(source);
  const auto target = copy.partition_D(compact);
  static_assert(decltype(size<3>(descriptors.layout()))::value == 4, "one copy for each K = 64");
  const auto piece = [step](const auto& tensor) {
    return tensor.data() + tensor.layout()(0, 0, 0, step);
  };
  return {(*piece(descriptors)).desc_, raw_pointer_cast(piece(target)) & 0xffffu};
}

template <int M, int N>
uint32_t cute_instruction_descriptor() {
  return cute::UMMA::make_instr_desc_block_scaled<Code, Code, float, Scale, M, N, kKMajor,
                                                  kKMajor>();
}

// kind::f16; Half: cutlass::half_t or cutlass::bfloat16_t
template <class Half, int M, int N>
uint32_t cute_half_instruction_descriptor() {
  return cute::UMMA::make_instr_desc<Half, Half, float, M, N, kKMajor, kKMajor>().desc_;
}

// Offset of the scale of element (row, k) of batch l, in an operand of rows x k x batches.
inline int64_t cute_scale_offset(int rows, int k_extent, int batches, int row, int k, int l) {
  const auto layout =
      ScaleConfig::tile_atom_to_shape_SFA(cute::make_shape(rows, rows, k_extent, batches));
  return layout(row, k, l);
}

}  // namespace cutlass_case
