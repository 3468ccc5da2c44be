// What PyTorch is asked, and its answers.
#include "qkv/app/bench/torch_peer.h"

#include "qkv/base/error.h"
#include "qkv/io/json.h"

// The assembler reads the script; the program needs no file beside it.
__asm__(
    ".pushsection .rodata\n.global qkv_torch_peer\nqkv_torch_peer:\n"
    ".incbin \"" QKV_TORCH_PEER "\"\n.byte 0\n.popsection\n");
extern "C" const char qkv_torch_peer[];

namespace qkv::bench {

TorchPeer::TorchPeer(const PythonSetup& setup, const Blas& blas, bool compiled)
    : name_((compiled ? "compiled PyTorch" : "PyTorch") + (blas.name.empty() ? "" : ", " + blas.name)),
      python_(setup.root.empty() ? setup.python : "chroot " + setup.root + " python3"),
      process_(python_command(setup, blas, qkv_torch_peer, {compiled ? "compile" : "eager"})) {}

double TorchPeer::ask(const std::string& request, const char* field) {
  try {
    return JsonObject(parse_json(process_.ask(request), {.where = "PyTorch"}), "PyTorch").number(field);
  } catch (const JsonError&) {
    throw IoError("PyTorch did not answer; try: " + python_ + " -c 'import torch'");
  }
}

double TorchPeer::build(const std::string& sizes) { return ask("case " + sizes, "parameters"); }
double TorchPeer::run(int64_t times) { return ask("run " + std::to_string(times), "seconds"); }
double TorchPeer::memory() { return ask("memory", "bytes"); }

}  // namespace qkv::bench
