"""The mean norm of thousands of tensors in CUDA C: one block a tensor, all in one launch."""

import torch
from cuda_source import CudaSource, check_is_there

SOURCE = CudaSource(
    "gradient_mean",
    r"""
#include <torch/extension.h>

constexpr int THREADS = 256;
constexpr int MOST = 2040;  // tensors in a launch

struct Table {
  const float* data[MOST];
  int length[MOST];
};

// Since CUDA 12.1 a kernel takes 32,764 bytes of arguments, on GPUs from Volta on. The table has
// 24,480, so that it needs no copy to the GPU. Each block adds up the magnitudes of its tensor.
__global__ void magnitude_kernel(const __grid_constant__ Table table, float* out) {
  __shared__ float of_warp[THREADS / 32];
  const float* data = table.data[blockIdx.x];
  int length = table.length[blockIdx.x];
  float value = 0.f;
  for (int i = threadIdx.x; i < length; i += THREADS) value += fabsf(data[i]);
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < THREADS / 32; ++warp) value += of_warp[warp];
    out[blockIdx.x] = value;
  }
}

// A list of Python's, read in place: to make a vector of thousands of tensors would take longer
// than the GPU does.
torch::Tensor mean_norm(py::list tensors) {
  int64_t count = PyList_GET_SIZE(tensors.ptr());
  TORCH_CHECK(count > 0, "mean_norm: there is no tensor");
  TORCH_CHECK(THPVariable_Check(PyList_GET_ITEM(tensors.ptr(), 0)), "mean_norm: no tensors");
  const at::Tensor& first = THPVariable_Unpack(PyList_GET_ITEM(tensors.ptr(), 0));
  TORCH_CHECK(first.is_cuda(), "mean_norm: the tensors must be on a GPU");
  const c10::cuda::CUDAGuard guard(first.device());
  auto sums = torch::empty({count}, first.options());
  auto stream = c10::cuda::getCurrentCUDAStream();
  Table table;
  for (int64_t start = 0; start < count; start += MOST) {
    int held = int(std::min<int64_t>(count - start, MOST));
    for (int i = 0; i < held; ++i) {
      PyObject* item = PyList_GET_ITEM(tensors.ptr(), start + i);
      TORCH_CHECK(THPVariable_Check(item), "mean_norm: a list of tensors only");
      const at::Tensor& tensor = THPVariable_Unpack(item);
      TORCH_CHECK(tensor.device() == first.device(), "mean_norm: all on one GPU only");
      TORCH_CHECK(tensor.scalar_type() == torch::kFloat && tensor.is_contiguous(),
                  "mean_norm: contiguous float32 tensors only");
      TORCH_CHECK(tensor.numel() <= INT32_MAX, "mean_norm: a tensor beyond 2^31 - 1 elements");
      table.data[i] = tensor.const_data_ptr<float>();
      table.length[i] = int(tensor.numel());
    }
    magnitude_kernel<<<held, THREADS, 0, stream>>>(table, sums.data_ptr<float>() + start);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }
  return sums.sum().div_(double(count));
}
""",
)


def mean_norm(gradients: list[torch.Tensor]) -> torch.Tensor:
    # Not an operator of torch.library: to look through 2,000 arguments would take it longer than
    # the kernel takes.
    check_is_there(gradients[0])
    return SOURCE.module.mean_norm(gradients)
