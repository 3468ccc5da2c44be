// MPI behind qkv's interface: the plugin libqkv_mpi.so, the only file that names a type of MPI.
#include <mpi.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "qkv/base/error.h"
#include "qkv/dist/launch.h"
#include "qkv/dist/processes.h"
#include "qkv/version.h"

namespace {

using qkv::Error;
using qkv::Processes;

constexpr size_t kMost = size_t{1} << 30;  // bytes in one message: MPI counts with an int

void check(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw Error(std::string(call) + " failed: " + text);
}

/// Counts and places as MPI takes them.
struct Layout {
  explicit Layout(std::span<const int64_t> numbers) {
    int64_t at = 0;
    for (const int64_t n : numbers) {
      counts.push_back(static_cast<int>(n));
      places.push_back(static_cast<int>(at));
      at += n;
    }
    if (at > std::numeric_limits<int>::max()) throw Error("the model is too large for one message of MPI");
  }
  std::vector<int> counts, places;
};

class MpiProcesses final : public Processes {
 public:
  MpiProcesses() {
    int given = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given), "MPI_Init_thread");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void broadcast(std::span<std::byte> bytes) override {
    for (; !bytes.empty(); bytes = bytes.subspan(std::min(kMost, bytes.size()))) {
      const auto n = static_cast<int>(std::min(kMost, bytes.size()));
      check(MPI_Bcast(bytes.data(), n, MPI_BYTE, 0, MPI_COMM_WORLD), "MPI_Bcast");
    }
  }

  std::vector<std::string> gather(std::string_view mine) override {
    auto n = static_cast<int64_t>(mine.size());
    std::vector<int64_t> sizes(static_cast<size_t>(size_));
    check(MPI_Allgather(&n, 1, MPI_INT64_T, sizes.data(), 1, MPI_INT64_T, MPI_COMM_WORLD), "MPI_Allgather");
    std::string all(static_cast<size_t>(std::accumulate(sizes.begin(), sizes.end(), int64_t{0})), '\0');
    const Layout layout(sizes);
    check(MPI_Allgatherv(mine.data(), static_cast<int>(n), MPI_BYTE, all.data(), layout.counts.data(),
                         layout.places.data(), MPI_BYTE, MPI_COMM_WORLD),
          "MPI_Allgatherv");
    std::vector<std::string> texts;
    for (size_t r = 0; r < sizes.size(); ++r) {
      texts.push_back(all.substr(static_cast<size_t>(layout.places[r]), static_cast<size_t>(sizes[r])));
    }
    return texts;
  }

  void exchange(std::span<const float> out, std::span<const int64_t> give, std::span<float> in,
                std::span<const int64_t> take) override {
    const Layout to(give), from(take);
    check(MPI_Alltoallv(out.data(), to.counts.data(), to.places.data(), MPI_FLOAT, in.data(), from.counts.data(),
                        from.places.data(), MPI_FLOAT, MPI_COMM_WORLD),
          "MPI_Alltoallv");
  }

  void complete(std::span<float> all, std::span<const int64_t> counts) override {
    const Layout layout(counts);
    check(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.data(), layout.counts.data(), layout.places.data(),
                         MPI_FLOAT, MPI_COMM_WORLD),
          "MPI_Allgatherv");
  }

  void leave() override {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
  }
  void abort(int code) override { MPI_Abort(MPI_COMM_WORLD, code); }

 private:
  int rank_ = 0, size_ = 1;
};

}  // namespace

extern "C" const char* qkv_mpi_version() { return QKV_VERSION; }
extern "C" Processes* qkv_mpi_join() { return new MpiProcesses; }
