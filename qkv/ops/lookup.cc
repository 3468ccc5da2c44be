// Look-ups of rows by index: embeddings and gathers.
#include <algorithm>

#include "qkv/ops/common.h"
#include "qkv/ops/ops.h"

namespace qkv {
namespace {

// rows[i] = table[ids[i]], zero where an id is -1.
Tensor look_up(const char* op, const Tensor& table_in, std::span<const int64_t> ids, int64_t lowest) {
  check_defined(op, table_in);
  if (table_in.rank() != 2) shape_error(op, "expected a table [V,C], got " + table_in.shape().str());
  const Tensor table = dense(table_in);
  const int64_t V = table.dim(0), C = table.dim(1), n = static_cast<int64_t>(ids.size());
  for (int64_t id : ids) {
    if (id < lowest || id >= V) {
      shape_error(op, "index " + std::to_string(id) + " outside a table of shape " + table.shape().str());
    }
  }
  Tensor out = Tensor::empty({n, C}, table.dtype());
  std::vector<int64_t> kept(ids.begin(), ids.end());
  dispatch(table.dtype(), [&](auto t) {
    using T = decltype(t);
    const T* from = table.data<T>();
    T* to = out.data<T>();
    parallel_blocks(n, 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t id = kept[static_cast<size_t>(i)];
        if (id < 0) {
          std::fill_n(to + i * C, C, T(0));
        } else {
          std::copy_n(from + id * C, C, to + i * C);
        }
      }
    });
  });
  return record(op, out, {table_in}, [kept = std::move(kept)](const Tensor& d_out, Grads& d) {
    add_rows_at(dense(d_out), kept, d.buffer(0));
  });
}

}  // namespace

void add_rows_at(const Tensor& rows, std::span<const int64_t> ids, Tensor table) {
  const int64_t C = table.dim(1);
  dispatch(rows.dtype(), [&](auto t) {
    using T = decltype(t);
    const T* from = rows.data<T>();
    T* to = table.data<T>();
    // Tasks own column ranges, so every row sum runs in the order of the ids.
    parallel_blocks(C, 64, [&](int64_t begin, int64_t end) {
      for (size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] < 0) continue;
        const T* src = from + static_cast<int64_t>(i) * C;
        T* dst = to + ids[i] * C;
        for (int64_t c = begin; c < end; ++c) dst[c] += src[c];
      }
    });
  });
}

Tensor embedding(const Tensor& table, std::span<const int64_t> ids) { return look_up("embedding", table, ids, 0); }

Tensor gather_rows(const Tensor& x, std::span<const int64_t> rows) { return look_up("gather_rows", x, rows, -1); }

}  // namespace qkv
