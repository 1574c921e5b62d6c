#include <trunnion/cuda_run.hpp>

namespace trunnion {

bool fill(const Driver& driver, const FillStep& step, uint64_t address, uint64_t count, CUstream stream) {
  const CUdeviceptr at = address + step.offset;
  const char* call = "cuMemsetD32Async";
  CUresult status = CUDA_SUCCESS;
  if (step.pitch != step.width) {
    call = "cuMemsetD2D32Async";
    status = driver.memset_2d_d32(at, step.pitch, step.value, 1, count, stream);
  } else if (step.width == 1) {
    call = "cuMemsetD8Async";
    status = driver.memset_d8(at, static_cast<unsigned char>(step.value), count, stream);
  } else if (step.width == 2) {
    call = "cuMemsetD16Async";
    status = driver.memset_d16(at, static_cast<unsigned short>(step.value), count, stream);
  } else {
    status = driver.memset_d32(at, step.value, count, stream);
  }
  return succeeded(driver, call, status, {&stream});
}

LaunchConfig::LaunchConfig(Extents grid, Extents block, uint32_t dynamic_smem_bytes, CUstream stream) {
  config_.gridDimX = grid.x, config_.gridDimY = grid.y, config_.gridDimZ = grid.z;
  config_.blockDimX = block.x, config_.blockDimY = block.y, config_.blockDimZ = block.z;
  config_.sharedMemBytes = dynamic_smem_bytes;
  config_.hStream = stream;
  config_.attrs = nullptr;
  config_.numAttrs = 0;
}

CUresult LaunchConfig::attempt(const CallBase& call, uint32_t kernel, void** parameters) {
  const Program& program = call.program;
  return program.driver().launch_kernel_ex(&config_, reinterpret_cast<CUfunction>(program.kernel(kernel)),
                                           parameters, nullptr);
}

// Only the driver's own streams need a current context, and only where there is one device is none looked for before.
bool LaunchConfig::retry(const CallBase& call, uint32_t kernel, void** parameters, Name name,
                         CUresult status) {
  if (status != CUDA_ERROR_INVALID_CONTEXT) return refused(call.program, status, name);
  Entered entered;
  if (!entered.enter(call.program.driver(), *call.state, call.place.device)) return false;
  if (!entered.is_new()) return refused(call.program, status, name);
  status = attempt(call, kernel, parameters);
  return status == CUDA_SUCCESS ? true : refused(call.program, status, name);
}

static void show_extents(Text& text, unsigned x, unsigned y, unsigned z) {
  text << uint64_t{x} << "," << uint64_t{y} << "," << uint64_t{z};
}

static void show_attribute(Text& text, const CUlaunchAttribute& attribute) {
  const CUlaunchAttributeValue& value = attribute.value;
  text << static_cast<int64_t>(attribute.id) << ":";
  switch (static_cast<int>(attribute.id)) {
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      show_extents(text, value.clusterDim.x, value.clusterDim.y, value.clusterDim.z);
      break;
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
      show_extents(text, value.preferredClusterDim.x, value.preferredClusterDim.y,
                   value.preferredClusterDim.z);
      break;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      break;
    default:  // one number of 32 bits, which the union begins with
      int32_t number;
      std::memcpy(&number, &value, sizeof number);
      text << int64_t{number};
  }
  text << " ";
}

bool LaunchConfig::refused(const Program& program, CUresult status, Name name) const {
  const Driver& driver = program.driver();
  RefusedLaunch launch{name, {}, {}, {}};
  const unsigned shape[] = {config_.gridDimX,  config_.gridDimY,  config_.gridDimZ,
                            config_.blockDimX, config_.blockDimY, config_.blockDimZ};
  for (const unsigned extent : shape) launch.shape << uint64_t{extent} << " ";
  for (unsigned index = 0; index < config_.numAttrs; ++index) {
    const CUlaunchAttribute& attribute = config_.attrs[index];
    show_attribute(launch.attributes, attribute);
    if (attribute.id != CU_LAUNCH_ATTRIBUTE_PRIORITY) continue;
    int least_urgent = 0, most_urgent = 0;  // the most urgent priority is the least number
    if (driver.ctx_get_priorities(&least_urgent, &most_urgent) == CUDA_SUCCESS) {
      launch.priorities << int64_t{most_urgent} << " " << int64_t{least_urgent};
    }
  }
  RefusedCall refused;
  refused.stream = &config_.hStream;
  refused.launch = &launch;
  refused.image = &program.target();
  return raise_driver(driver, "cuLaunchKernelEx", status, refused);
}

bool check_stream(const Program& program, CUstream stream, int32_t device) {
  if (is_driver_stream(stream) || program.device_count() < 2) return true;
  const Driver& driver = program.driver();
  CUcontext context = nullptr;
  CUdevice found = -1;
  CUresult status = driver.stream_get_ctx(stream, &context);
  if (status != CUDA_SUCCESS) {
    // A stream that is none fails there too, and that is the call that launchers in Python name.
    bool capturing = false;
    return is_capturing(driver, stream, capturing) && raise_driver(driver, "cuStreamGetCtx", status);
  }
  if (!succeeded(driver, "cuCtxPushCurrent", driver.ctx_push_current(context))) return false;
  status = driver.ctx_get_device(&found);
  driver.ctx_pop_current(&context);
  return succeeded(driver, "cuCtxGetDevice", status) &&
         (found == device || raise_stream_device(found, device));
}

}  // namespace trunnion
