// libfabricbench-loopback.so, to be preloaded into an MPI starter all of whose ranks are on this machine. hydra listens
// for its proxies at all addresses of the machine and takes what comes there for a proxy; it has no option against
// that. With this, a TCP socket that is bound to all addresses is bound to the loopback alone.
//
// It is the starter's alone: before anything is started, it takes itself out of LD_PRELOAD, so that neither proxies nor
// ranks have it.
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

constexpr const char* variable = "LD_PRELOAD";
constexpr const char* own_name = "/libfabricbench-loopback.so";
constexpr const char* separators = ": ";

bool is_own(const char* entry, size_t length) {
  const size_t own_length = strlen(own_name);
  return length >= own_length && strncmp(entry + length - own_length, own_name, own_length) == 0;
}

[[gnu::constructor]] void leave_the_environment() {
  const char* const preloaded = getenv(variable);
  if (preloaded == nullptr) return;
  char* const kept = static_cast<char*>(calloc(strlen(preloaded) + 1, 1));
  if (kept == nullptr) return;
  for (const char* entry = preloaded; *entry != '\0';) {
    const size_t length = strcspn(entry, separators);
    if (length > 0 && !is_own(entry, length)) {
      if (*kept != '\0') strcat(kept, ":");
      strncat(kept, entry, length);
    }
    entry += length;
    entry += strspn(entry, separators);
  }
  if (*kept == '\0') {
    unsetenv(variable);
  } else {
    setenv(variable, kept, 1);
  }
  free(kept);
}

bool is_tcp(int socket) {
  int type = 0;
  socklen_t size = sizeof type;
  return getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

}  // namespace

extern "C" int bind(int socket, const sockaddr* address, socklen_t size) {
  sockaddr_in loopback{};
  if (address != nullptr && address->sa_family == AF_INET && size >= sizeof loopback && is_tcp(socket)) {
    memcpy(&loopback, address, sizeof loopback);
    if (loopback.sin_addr.s_addr == htonl(INADDR_ANY)) {
      loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      address = reinterpret_cast<const sockaddr*>(&loopback);
      size = sizeof loopback;
    }
  }
  return static_cast<int>(syscall(SYS_bind, socket, address, size));
}
