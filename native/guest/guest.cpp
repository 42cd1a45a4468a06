// libfabricbench-guest.so, to be preloaded into a User-Mode Linux kernel. Such a kernel, 6.1 for one, keeps the
// vector registers of its processes in buffers of 2696 bytes. A processor with more state than that (AMX: some 11,000
// bytes) has its own kernel refuse to set registers from so short a buffer, and the guest ends at its first program.
// So: what is set from a short buffer is set from one of full length, the rest of which is as it is in the process. Its
// programs do not use that rest: they would have to ask the guest's kernel for it, which does not know it.
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstring>

namespace {

// The largest there is has 11,008 bytes. Not on the stack: a guest's kernel has little, and only one thread that
// traces.
constexpr std::size_t most_state_bytes = std::size_t{1} << 16U;
alignas(64) unsigned char state[most_state_bytes];

long set_vector_state(pid_t process, const iovec& given) {
  iovec whole{state, sizeof state};
  const long got = syscall(SYS_ptrace, PTRACE_GETREGSET, process, NT_X86_XSTATE, &whole);
  if (got < 0 || given.iov_len >= whole.iov_len) {
    return syscall(SYS_ptrace, PTRACE_SETREGSET, process, NT_X86_XSTATE, &given);
  }
  std::memcpy(state, given.iov_base, given.iov_len);
  return syscall(SYS_ptrace, PTRACE_SETREGSET, process, NT_X86_XSTATE, &whole);
}

bool is_peek(int request) {
  return request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER;
}

}  // namespace

// NOLINTNEXTLINE(cert-dcl50-cpp): the C library's own is variadic
extern "C" long ptrace(__ptrace_request request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  const auto process = va_arg(arguments, pid_t);
  void* const address = va_arg(arguments, void*);
  void* const data = va_arg(arguments, void*);
  va_end(arguments);
  if (request == PTRACE_SETREGSET && address == reinterpret_cast<void*>(NT_X86_XSTATE)) {
    return set_vector_state(process, *static_cast<const iovec*>(data));
  }
  if (!is_peek(request)) return syscall(SYS_ptrace, request, process, address, data);
  long word = 0;  // the system call itself writes it, the C library returns it
  const long result = syscall(SYS_ptrace, request, process, address, &word);
  if (result >= 0) errno = 0;
  return result < 0 ? result : word;
}
