/* Preloaded, it fails what rank FAILED_SENDER sends to an address, datagrams that is, once SENDS of them are sent: as a firewall does
 * whose table is full. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

typedef ssize_t (*Send)(int, const void*, size_t, int, const struct sockaddr*, socklen_t);

static int number(const char* name) {
  const char* text = getenv(name);
  return text == NULL ? -1 : atoi(text);
}

static int rank(void) { return number("PMI_RANK") >= 0 ? number("PMI_RANK") : number("PMIX_RANK"); }

ssize_t sendto(int socket, const void* bytes, size_t size, int flags, const struct sockaddr* to, socklen_t to_size) {
  static Send own;
  static int sent;
  if (own == NULL) own = (Send)dlsym(RTLD_NEXT, "sendto");
  if (to != NULL && rank() == number("FAILED_SENDER") && ++sent > number("SENDS")) {
    errno = EPERM;
    return -1;
  }
  return own(socket, bytes, size, flags, to, to_size);
}
