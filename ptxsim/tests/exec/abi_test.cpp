// The layouts that the stand-in declares, beside those of CUDA's own headers where they are.
#include <gtest/gtest.h>

#ifdef PTXSIM_HAS_CUDA_HEADERS
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "fake_cuda/abi.hpp"
#include "fake_cuda/functions.hpp"
#include "fake_cuda/images.hpp"

namespace ptxsim_test {
namespace {

using namespace ptxsim::cuda;
namespace abi = ptxsim::cuda::abi;  // the standard library has one of that name

#define SAME_PLACE(ours, our_member, theirs, their_member) \
  EXPECT_EQ(offsetof(abi::ours, our_member), offsetof(theirs, their_member)) << #their_member

TEST(Abi, LaunchConfigurations) {
  EXPECT_EQ(sizeof(abi::RuntimeLaunchConfig), sizeof(cudaLaunchConfig_t));
  SAME_PLACE(RuntimeLaunchConfig, block, cudaLaunchConfig_t, blockDim);
  SAME_PLACE(RuntimeLaunchConfig, dynamic_shared_bytes, cudaLaunchConfig_t, dynamicSmemBytes);
  SAME_PLACE(RuntimeLaunchConfig, attributes, cudaLaunchConfig_t, attrs);
  SAME_PLACE(RuntimeLaunchConfig, num_attributes, cudaLaunchConfig_t, numAttrs);
  EXPECT_EQ(sizeof(abi::DriverLaunchConfig), sizeof(CUlaunchConfig));
  SAME_PLACE(DriverLaunchConfig, dynamic_shared_bytes, CUlaunchConfig, sharedMemBytes);
  SAME_PLACE(DriverLaunchConfig, stream, CUlaunchConfig, hStream);
  SAME_PLACE(DriverLaunchConfig, attributes, CUlaunchConfig, attrs);
  EXPECT_EQ(sizeof(abi::LaunchAttribute), sizeof(cudaLaunchAttribute));
  SAME_PLACE(LaunchAttribute, cluster, cudaLaunchAttribute, val);
  EXPECT_EQ(abi::kAttributeClusterDimension, uint32_t{cudaLaunchAttributeClusterDimension});
  EXPECT_EQ(abi::kAttributeCooperative, uint32_t{cudaLaunchAttributeCooperative});
}

TEST(Abi, FunctionAttributes) {
  EXPECT_EQ(sizeof(abi::FunctionAttributes), sizeof(cudaFuncAttributes));
  SAME_PLACE(FunctionAttributes, num_registers, cudaFuncAttributes, numRegs);
  SAME_PLACE(FunctionAttributes, max_dynamic_shared_bytes, cudaFuncAttributes,
             maxDynamicSharedSizeBytes);
  SAME_PLACE(FunctionAttributes, required_cluster, cudaFuncAttributes, requiredClusterWidth);
  SAME_PLACE(FunctionAttributes, non_portable_cluster_size, cudaFuncAttributes,
             nonPortableClusterSizeAllowed);
  EXPECT_EQ(int{kMaxDynamicSharedBytes}, int{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES});
  EXPECT_EQ(int{kNonPortableClusterSize}, int{CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED});
  EXPECT_EQ(int{kRequiredClusterDepth}, int{CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH});
}

TEST(Abi, ImageDescriptions) {
  EXPECT_EQ(sizeof(abi::ChannelFormat), sizeof(cudaChannelFormatDesc));
  SAME_PLACE(ChannelFormat, kind, cudaChannelFormatDesc, f);
  EXPECT_EQ(sizeof(abi::Resource), sizeof(cudaResourceDesc));
  SAME_PLACE(Resource, array, cudaResourceDesc, res.array.array);
  SAME_PLACE(Resource, linear.bytes, cudaResourceDesc, res.linear.sizeInBytes);
  SAME_PLACE(Resource, rows.format, cudaResourceDesc, res.pitch2D.desc);
  SAME_PLACE(Resource, rows.pitch, cudaResourceDesc, res.pitch2D.pitchInBytes);
  SAME_PLACE(Resource, flags, cudaResourceDesc, flags);
  EXPECT_EQ(sizeof(abi::TextureSettings), sizeof(cudaTextureDesc));
  SAME_PLACE(TextureSettings, read_mode, cudaTextureDesc, readMode);
  SAME_PLACE(TextureSettings, border, cudaTextureDesc, borderColor);
  SAME_PLACE(TextureSettings, normalized_coordinates, cudaTextureDesc, normalizedCoords);
  SAME_PLACE(TextureSettings, most_anisotropy, cudaTextureDesc, maxAnisotropy);
  SAME_PLACE(TextureSettings, level_bias, cudaTextureDesc, mipmapLevelBias);
  SAME_PLACE(TextureSettings, seamless_cube, cudaTextureDesc, seamlessCubemap);
  EXPECT_EQ(static_cast<int>(ptxsim::AddressMode::kBorder), int{cudaAddressModeBorder});
  EXPECT_EQ(static_cast<int>(ptxsim::AddressMode::kMirror), int{cudaAddressModeMirror});
  EXPECT_EQ(static_cast<int>(ptxsim::ChannelKind::kFloat), int{cudaChannelFormatKindFloat});
  EXPECT_EQ(unsigned{kArrayLayered}, unsigned{cudaArrayLayered});
  EXPECT_EQ(unsigned{kArraySurfaceLoadStore}, unsigned{cudaArraySurfaceLoadStore});
  EXPECT_EQ(unsigned{kArrayCubemap}, unsigned{cudaArrayCubemap});
}

TEST(Abi, PointerAttributes) {
  SAME_PLACE(PointerAttributes, device, cudaPointerAttributes, device);
  SAME_PLACE(PointerAttributes, device_pointer, cudaPointerAttributes, devicePointer);
  SAME_PLACE(PointerAttributes, host_pointer, cudaPointerAttributes, hostPointer);
}

#if CUDART_VERSION >= 13000
TEST(Abi, DeviceProperties) {
  EXPECT_EQ(sizeof(abi::DeviceProperties), sizeof(cudaDeviceProp));
  SAME_PLACE(DeviceProperties, total_global_memory, cudaDeviceProp, totalGlobalMem);
  SAME_PLACE(DeviceProperties, memory_pitch, cudaDeviceProp, memPitch);
  SAME_PLACE(DeviceProperties, major, cudaDeviceProp, major);
  SAME_PLACE(DeviceProperties, num_sms, cudaDeviceProp, multiProcessorCount);
  SAME_PLACE(DeviceProperties, surface_alignment, cudaDeviceProp, surfaceAlignment);
  SAME_PLACE(DeviceProperties, l2_bytes, cudaDeviceProp, l2CacheSize);
  SAME_PLACE(DeviceProperties, shared_bytes_per_sm, cudaDeviceProp, sharedMemPerMultiprocessor);
  SAME_PLACE(DeviceProperties, cooperative_launch, cudaDeviceProp, cooperativeLaunch);
  SAME_PLACE(DeviceProperties, shared_bytes_per_block_optin, cudaDeviceProp,
             sharedMemPerBlockOptin);
  SAME_PLACE(DeviceProperties, reserved_shared_bytes_per_block, cudaDeviceProp,
             reservedSharedMemPerBlock);
  SAME_PLACE(DeviceProperties, cluster_launch, cudaDeviceProp, clusterLaunch);
  SAME_PLACE(DeviceProperties, numa_id, cudaDeviceProp, deviceNumaId);
  SAME_PLACE(DeviceProperties, host_numa_multinode_ipc, cudaDeviceProp,
             hostNumaMultinodeIpcSupported);
}
#endif

TEST(Abi, Statuses) {
  for (int status = 0; status < 1000; ++status) {
    const char* name = runtime_name(status);
    if (name == nullptr) continue;
    EXPECT_NE(text_of(status), nullptr);
    EXPECT_NE(driver_name(status), nullptr);
  }
  EXPECT_EQ(int{kInvalidClusterSize}, int{cudaErrorInvalidClusterSize});
  EXPECT_EQ(int{kNoBinaryForGpu}, int{cudaErrorNoKernelImageForDevice});
  EXPECT_EQ(int{kInvalidImage}, int{CUDA_ERROR_INVALID_IMAGE});
  EXPECT_EQ(int{kIllegalAddress}, int{cudaErrorIllegalAddress});
  EXPECT_EQ(int{kLaunchTimeout}, int{cudaErrorLaunchTimeout});
  EXPECT_EQ(int{kMisalignedAddress}, int{cudaErrorMisalignedAddress});
  EXPECT_EQ(int{kLaunchFailed}, int{cudaErrorLaunchFailure});
  EXPECT_EQ(int{kCooperativeLaunchTooLarge}, int{cudaErrorCooperativeLaunchTooLarge});
  EXPECT_EQ(int{kStreamCaptureInvalidated}, int{cudaErrorStreamCaptureInvalidated});
  EXPECT_EQ(int{kStreamCaptureUnjoined}, int{cudaErrorStreamCaptureUnjoined});
  EXPECT_EQ(int{kInvalidMemcpyDirection}, int{cudaErrorInvalidMemcpyDirection});
  EXPECT_EQ(int{kNotFound}, int{CUDA_ERROR_NOT_FOUND});
}

}  // namespace
}  // namespace ptxsim_test

#endif
