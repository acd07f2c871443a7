// Results of the driver's and the runtime's calls: both have the same numbers for the same thing
// (CUDA 13.0, cuda.h, "enum cudaError_enum"; driver_types.h, "enum cudaError"), but for the few
// that only one of them has.
#pragma once

namespace ptxsim::cuda {

enum Status : int {
  kWaits = -1,  // none of CUDA's: a launch waits for the host, and is to be begun anew
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kInvalidConfiguration = 9,  // the runtime's: the driver says kInvalidValue
  kInvalidSymbol = 13,        // the runtime's
  kInvalidMemcpyDirection = 21,
  kInvalidDeviceFunction = 98,  // the runtime's
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kInvalidPtx = 218,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchTimeout = 702,
  kAssert = 710,
  kMisalignedAddress = 716,
  kLaunchFailed = 719,
  kCooperativeLaunchTooLarge = 720,
  kNotSupported = 801,
  kStreamCaptureUnsupported = 900,
  kStreamCaptureInvalidated = 901,
  kStreamCaptureUnjoined = 904,
  kIllegalState = 401,
  kGraphExecUpdateFailure = 910,
  kInvalidClusterSize = 912,
  kUnknown = 999,
};

// nullptr for a number that is none.
const char* runtime_name(int status);  // "cudaErrorInvalidValue"
const char* driver_name(int status);   // "CUDA_ERROR_INVALID_VALUE"
const char* text_of(int status);       // "invalid argument"

}  // namespace ptxsim::cuda
