// Preloaded into the program: fails, or kills it at, the Nth call of one kind. QKV_FAULT is KIND:N:HOW, where KIND is
// write, fsync, rename, open or malloc, and HOW is once, on (from then on) or kill. Calls count from main() on.
// QKV_FAULT_COUNTS names a file that gets the number of calls of each kind when the program ends. Of malloc, calls by
// the program and the C++ library count: what draws (pango, GLib, fontconfig) does not live without memory, and the
// program sees to it that there is some before it calls them.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

enum Kind { kWrite, kFsync, kRename, kOpen, kMalloc, kKinds };
constexpr const char* kNames[kKinds] = {"write", "fsync", "rename", "open", "malloc"};
enum How { kOnce, kOn, kKill };

std::atomic<bool> armed{false};
std::atomic<long> calls[kKinds];
int fault_kind = -1;
long fault_number = 0;
How fault_how = kOnce;

void read_settings() {
  const char* text = getenv("QKV_FAULT");
  char kind[16], how[16];
  if (text == nullptr || sscanf(text, "%15[^:]:%ld:%15s", kind, &fault_number, how) != 3) return;
  for (int k = 0; k < kKinds; ++k) {
    if (strcmp(kind, kNames[k]) == 0) fault_kind = k;
  }
  fault_how = strcmp(how, "kill") == 0 ? kKill : strcmp(how, "on") == 0 ? kOn : kOnce;
}

// Whether this call is to fail.
bool fails(Kind kind) {
  if (!armed.load(std::memory_order_relaxed)) return false;
  const long n = ++calls[kind];
  if (kind != fault_kind || n < fault_number || (n > fault_number && fault_how != kOn)) return false;
  if (fault_how == kKill) kill(getpid(), SIGKILL);
  return true;
}

template <class Fn>
Fn real(Fn, const char* name) {
  return reinterpret_cast<Fn>(dlsym(RTLD_NEXT, name));
}

struct Code {
  uintptr_t begin, end;
};
Code counted[8];
int counted_objects = 0;

int note_object(dl_phdr_info* object, size_t, void*) {
  const char* const name = object->dlpi_name;
  if (name[0] != '\0' && strstr(name, "/libstdc++.so") == nullptr) return 0;
  for (int i = 0; i < object->dlpi_phnum && counted_objects < 8; ++i) {
    const auto& part = object->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    const uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    counted[counted_objects++] = {begin, begin + part.p_memsz};
  }
  return 0;
}

bool no_memory(const void* caller) {
  const auto at = reinterpret_cast<uintptr_t>(caller);
  for (int i = 0; i < counted_objects; ++i) {
    if (at < counted[i].begin || at >= counted[i].end) continue;
    if (!fails(kMalloc)) return false;
    errno = ENOMEM;
    return true;
  }
  return false;
}

int (*real_main)(int, char**, char**) = nullptr;
int armed_main(int argc, char** argv, char** envp) {
  read_settings();
  dl_iterate_phdr(&note_object, nullptr);
  armed = true;
  return real_main(argc, argv, envp);
}

__attribute__((destructor)) void write_counts() {
  armed = false;
  const char* path = getenv("QKV_FAULT_COUNTS");
  FILE* file = path == nullptr ? nullptr : fopen(path, "w");
  if (file == nullptr) return;
  for (int k = 0; k < kKinds; ++k) fprintf(file, "%ld ", calls[k].load());
  fclose(file);
}

bool writes(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0; }

}  // namespace

extern "C" {

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
  real_main = main;
  return real(__libc_start_main, "__libc_start_main")(armed_main, argc, argv, init, fini, rtld_fini, stack_end);
}

ssize_t write(int fd, const void* bytes, size_t count) {
  if (fd > 2 && fails(kWrite)) {
    errno = ENOSPC;
    return -1;
  }
  return real(write, "write")(fd, bytes, count);
}

int fsync(int) {
  if (fails(kFsync)) {
    errno = EIO;
    return -1;
  }
  return 0;  // what a killed process wrote the system keeps; asking the disk each time would take minutes
}

int rename(const char* from, const char* to) {
  if (fails(kRename)) {
    errno = EIO;
    return -1;
  }
  return real(rename, "rename")(from, to);
}

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = va_arg(more, mode_t);
  va_end(more);
  if (writes(flags) && fails(kOpen)) {
    errno = EMFILE;
    return -1;
  }
  return real(open, "open")(path, flags, mode);
}

void* malloc(size_t bytes) { return no_memory(__builtin_return_address(0)) ? nullptr : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) {
  return no_memory(__builtin_return_address(0)) ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* block, size_t bytes) {
  return no_memory(__builtin_return_address(0)) ? nullptr : __libc_realloc(block, bytes);
}
void* aligned_alloc(size_t align, size_t bytes) {
  return no_memory(__builtin_return_address(0)) ? nullptr : __libc_memalign(align, bytes);
}
int posix_memalign(void** out, size_t align, size_t bytes) {
  void* const block = no_memory(__builtin_return_address(0)) ? nullptr : __libc_memalign(align, bytes);
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}

}  // extern "C"
