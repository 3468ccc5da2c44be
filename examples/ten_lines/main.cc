// Causal attention with a gradient, in ten lines.
#include <qkv/qkv.h>
#include <cstdio>

int main() {
  qkv::Rng rng(1);
  qkv::Tensor q = qkv::Tensor::randn({2, 8, 16, 64}, rng).set_requires_grad(true);  // [B, H, Lq, D]
  const qkv::Tensor k = qkv::Tensor::randn({2, 2, 16, 64}, rng);                    // [B, Hkv, Lk, D]: grouped heads
  const qkv::Tensor v = qkv::Tensor::randn({2, 2, 16, 64}, rng);
  const qkv::Tensor out = qkv::attention(q, k, v, {.causal = true, .window_left = 8});
  qkv::sum(out * out).backward();
  std::printf("%s attended; gradient of q %s\n", out.shape().str().c_str(), q.grad().shape().str().c_str());
}
