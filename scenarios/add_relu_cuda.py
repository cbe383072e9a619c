"""relu(a + b) in CUDA C: four elements a thread, read and written 16 bytes at a time."""

import torch
from cuda_source import CudaSource

SOURCE = CudaSource(
    "add_relu",
    r"""
__device__ float add_relu_of(float x, float y) {
  float sum = x + y;
  return sum < 0.f ? 0.f : sum;  // NaN stays NaN, as torch has it
}

__global__ void add_relu_kernel(const float4* a, const float4* b, float4* c, int64_t fours) {
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (i >= fours) return;
  float4 x = a[i], y = b[i];
  c[i] = make_float4(add_relu_of(x.x, y.x), add_relu_of(x.y, y.y), add_relu_of(x.z, y.z),
                     add_relu_of(x.w, y.w));
}

static bool aligned(const torch::Tensor& x) {
  return reinterpret_cast<uintptr_t>(x.data_ptr()) % sizeof(float4) == 0;
}

torch::Tensor add_relu(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.is_cuda() && b.device() == a.device(), "add_relu: both must be on one GPU");
  TORCH_CHECK(a.scalar_type() == torch::kFloat && b.scalar_type() == torch::kFloat,
              "add_relu: float32 only");
  TORCH_CHECK(a.is_contiguous() && b.is_contiguous() && a.sizes() == b.sizes(),
              "add_relu: contiguous arrays of one shape only");
  TORCH_CHECK(a.numel() % 4 == 0 && aligned(a) && aligned(b),
              "add_relu: a multiple of four elements, at addresses that are multiples of 16");
  const c10::cuda::CUDAGuard guard(a.device());
  auto c = torch::empty_like(a);
  int64_t fours = a.numel() / 4;
  if (fours == 0) return c;
  add_relu_kernel<<<(fours + 255) / 256, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      reinterpret_cast<const float4*>(a.data_ptr<float>()),
      reinterpret_cast<const float4*>(b.data_ptr<float>()),
      reinterpret_cast<float4*>(c.data_ptr<float>()), fours);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return c;
}
""",
)


@torch.library.custom_op("kernelcount_scenarios::add_relu", mutates_args=())
def add_relu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return SOURCE.module.add_relu(a, b)


@add_relu.register_fake
def _(a, b):
    return torch.empty_like(a)
