// The layouts that launchers rely on, as layouts.cc: those of the CUDA driver, whose libcuda is another than the cuda.h
// that a launcher is compiled with.
#include <trunnion/driver.hpp>
#include <trunnion/layouts.cc>

namespace trunnion {

TRUNNION_SIZE(CUtensorMap, 128);
TRUNNION_IS(alignof(CUtensorMap) % 64 == 0, "CUtensorMap");
TRUNNION_SIZE(CUlaunchConfig, 56);
TRUNNION_FIELD(CUlaunchConfig, gridDimX, 0, 4);
TRUNNION_FIELD(CUlaunchConfig, gridDimY, 4, 4);
TRUNNION_FIELD(CUlaunchConfig, gridDimZ, 8, 4);
TRUNNION_FIELD(CUlaunchConfig, blockDimX, 12, 4);
TRUNNION_FIELD(CUlaunchConfig, blockDimY, 16, 4);
TRUNNION_FIELD(CUlaunchConfig, blockDimZ, 20, 4);
TRUNNION_FIELD(CUlaunchConfig, sharedMemBytes, 24, 4);
TRUNNION_FIELD(CUlaunchConfig, hStream, 32, 8);
TRUNNION_FIELD(CUlaunchConfig, attrs, 40, 8);
TRUNNION_FIELD(CUlaunchConfig, numAttrs, 48, 4);
TRUNNION_SIZE(CUlaunchAttribute, 72);
TRUNNION_FIELD(CUlaunchAttribute, id, 0, 4);
TRUNNION_FIELD(CUlaunchAttribute, value, 8, 64);
TRUNNION_FIELD(CUlaunchAttributeValue, clusterDim, 0, 12);
TRUNNION_FIELD(CUlaunchAttributeValue, preferredClusterDim, 0, 12);
TRUNNION_FIELD(CUlaunchAttributeValue, accessPolicyWindow, 0, 32);
TRUNNION_FIELD(CUlaunchAttributeValue, cooperative, 0, 4);
TRUNNION_FIELD(CUlaunchAttributeValue, programmaticStreamSerializationAllowed, 0, 4);
TRUNNION_FIELD(CUlaunchAttributeValue, priority, 0, 4);
TRUNNION_FIELD(CUlaunchAttributeValue, sharedMemCarveout, 0, 4);
TRUNNION_SIZE(CUaccessPolicyWindow, 32);
TRUNNION_FIELD(CUaccessPolicyWindow, base_ptr, 0, 8);
TRUNNION_FIELD(CUaccessPolicyWindow, num_bytes, 8, 8);
TRUNNION_FIELD(CUaccessPolicyWindow, hitRatio, 16, 4);
TRUNNION_FIELD(CUaccessPolicyWindow, hitProp, 20, 4);
TRUNNION_FIELD(CUaccessPolicyWindow, missProp, 24, 4);
TRUNNION_SIZE(CUdevice, 4);
TRUNNION_SIZE(CUdeviceptr, 8);
TRUNNION_SIZE(CUresult, 4);

}  // namespace trunnion
