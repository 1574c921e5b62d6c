// cuda-samples, convolutionSeparable: its three functions of the host.
// tensors: image, taps, the image between, out, taps on the host; numbers: rows, columns.

#include "convolutionSeparable.cu"

#include "timed.h"

namespace {

bool convolve(void* const* tensors, const long long* numbers) {
  const int height = static_cast<int>(numbers[0]), width = static_cast<int>(numbers[1]);
  convolutionRowsGPU(at<float>(tensors, 2), at<float>(tensors, 0), width, height);
  convolutionColumnsGPU(at<float>(tensors, 3), at<float>(tensors, 2), width, height);
  return true;
}

}  // namespace

EXPORT double launches_alone(long long calls, void* const* tensors, const long long* numbers) {
  setConvolutionKernel(at<float>(tensors, 4));
  return timed(calls, [=] { return convolve(tensors, numbers); });
}

EXPORT double taps_of_the_host(long long calls, void* const* tensors, const long long* numbers) {
  return timed(calls, [=] {
    setConvolutionKernel(at<float>(tensors, 4));
    return convolve(tensors, numbers);
  });
}

EXPORT double taps_of_the_device(long long calls, void* const* tensors, const long long* numbers) {
  return timed(calls, [=] {
    return cudaMemcpyToSymbolAsync(c_Kernel, tensors[1], sizeof c_Kernel, 0, cudaMemcpyDeviceToDevice) ==
               cudaSuccess &&
           convolve(tensors, numbers);
  });
}
