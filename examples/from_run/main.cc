// What the program trained, used from C++: from_run RUN INPUT... prints an answer and where the model looked.
#include <qkv/runs.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc < 3) return std::puts("usage: from_run RUN INPUT..."), 2;
  qkv::Run run = qkv::open_run(argv[1]);
  for (int i = 2; i < argc; ++i) {
    const qkv::Prediction best = run.predict(argv[i], {.beam = 4, .length_penalty = 1});
    std::printf("%s -> %s (log probability %.3f)\n", argv[i], best.text.c_str(), best.score);
    for (const qkv::RunAttention& layer : run.trace(argv[i]).attention) {
      std::printf("  %s, layer %d: ", layer.site.c_str(), static_cast<int>(layer.layer));
      std::printf("%zu queries look at %zu keys\n", layer.queries.size(), layer.keys.size());
    }
  }
}
