// Calls of the runtime that the stand-in has not. Each says so in the report, and gives cudaErrorNotSupported: in a program
// with the runtime linked into it the call would otherwise begin to look for NVIDIA's driver.
#include "ptxsim/cuda/runtime/call.hpp"

#define PTXSIM_NOT_MODELLED(name) \
  PTXSIM_CUDA_API int name() { return remember(not_modelled(#name)); }

namespace ptxsim::cuda::runtime {

PTXSIM_NOT_MODELLED(__cudaRegisterManagedVar)
PTXSIM_NOT_MODELLED(__cudaRegisterHostVar)
PTXSIM_NOT_MODELLED(__cudaRegisterUnifiedTable)
PTXSIM_NOT_MODELLED(cudaArrayGetInfo)
PTXSIM_NOT_MODELLED(cudaCreateSurfaceObject)
PTXSIM_NOT_MODELLED(cudaCreateTextureObject)
PTXSIM_NOT_MODELLED(cudaDestroySurfaceObject)
PTXSIM_NOT_MODELLED(cudaDestroyTextureObject)
PTXSIM_NOT_MODELLED(cudaDeviceEnablePeerAccess)
PTXSIM_NOT_MODELLED(cudaFreeArray)
PTXSIM_NOT_MODELLED(cudaGetExportTable)
PTXSIM_NOT_MODELLED(cudaGraphAddDependencies)
PTXSIM_NOT_MODELLED(cudaGraphAddKernelNode)
PTXSIM_NOT_MODELLED(cudaGraphAddMemcpyNode)
PTXSIM_NOT_MODELLED(cudaGraphAddMemsetNode)
PTXSIM_NOT_MODELLED(cudaGraphAddNode)
PTXSIM_NOT_MODELLED(cudaGraphCreate)
PTXSIM_NOT_MODELLED(cudaGraphExecKernelNodeSetParams)
PTXSIM_NOT_MODELLED(cudaGraphExecUpdate)
PTXSIM_NOT_MODELLED(cudaGraphGetEdges)
PTXSIM_NOT_MODELLED(cudaGraphGetNodes)
PTXSIM_NOT_MODELLED(cudaGraphKernelNodeGetParams)
PTXSIM_NOT_MODELLED(cudaGraphKernelNodeSetParams)
PTXSIM_NOT_MODELLED(cudaIpcGetEventHandle)
PTXSIM_NOT_MODELLED(cudaIpcGetMemHandle)
PTXSIM_NOT_MODELLED(cudaIpcOpenMemHandle)
PTXSIM_NOT_MODELLED(cudaMalloc3D)
PTXSIM_NOT_MODELLED(cudaMalloc3DArray)
PTXSIM_NOT_MODELLED(cudaMallocArray)
PTXSIM_NOT_MODELLED(cudaMemcpy3D)
PTXSIM_NOT_MODELLED(cudaMemcpy3DAsync)
PTXSIM_NOT_MODELLED(cudaMemcpyToArray)
PTXSIM_NOT_MODELLED(cudaMemset2DAsync)
PTXSIM_NOT_MODELLED(cudaMemset3D)
PTXSIM_NOT_MODELLED(cudaOccupancyAvailableDynamicSMemPerBlock)
PTXSIM_NOT_MODELLED(cudaOccupancyMaxPotentialClusterSize)
PTXSIM_NOT_MODELLED(cudaStreamAttachMemAsync)
PTXSIM_NOT_MODELLED(cudaStreamBeginCaptureToGraph)
PTXSIM_NOT_MODELLED(cudaStreamGetAttribute)
PTXSIM_NOT_MODELLED(cudaStreamGetCaptureInfo)
PTXSIM_NOT_MODELLED(cudaStreamUpdateCaptureDependencies)
PTXSIM_NOT_MODELLED(cudaUserObjectCreate)

}  // namespace ptxsim::cuda::runtime
