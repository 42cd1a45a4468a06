// libfabricbench-socket-calls.so, preloaded into a measurer that is to tell the stages of MPI's messages: it stands
// between the MPI library and the C library's calls that move bytes through a socket, and while the measurer asks for
// it notes when each began and ended. What is received it asks for with a control message, so that the kernel's stamp
// of its arrival comes along; the measurer has switched that on (SO_TIMESTAMPING).
//
// While nobody asks, a call costs a look at two variables. Each is handed on to whoever comes next, the C library or
// what else was preloaded: a stack that bypasses the kernel, say.
#include "socket_calls/socket_calls.hpp"

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

namespace {

using fabricbench::SocketCall;
using fabricbench::SocketCallLog;

// Initial-exec: a preloaded library's thread variables cost no call.
[[gnu::tls_model("initial-exec")]] thread_local SocketCallLog* noted_in = nullptr;

bool is_noted(int descriptor) {
  return noted_in != nullptr && static_cast<std::size_t>(descriptor) < SocketCallLog::descriptors &&
         noted_in->is_watched.data()[descriptor];
}

/// The next definition of a function in the order of libraries. Not found in a constructor: others' constructors call
/// as well, and may come first.
template <class Function>
Function* following(Function*& found, const char* name) {
  if (found == nullptr) [[unlikely]]
    found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  return found;
}
#define FOLLOWING(function)                       \
  [] {                                            \
    static decltype(::function)* found = nullptr; \
    return following(found, #function);           \
  }()

std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * 1'000'000'000L + time.tv_nsec;
}

void add(const SocketCall& call) {
  SocketCallLog& log = *noted_in;
  if (log.count < log.capacity) log.calls[log.count] = call;
  ++log.count;
}

template <class Call>
ssize_t note_sending(Call call) {
  const std::int64_t began = now_ns();
  const ssize_t size = call();
  if (size > 0) add({began, now_ns(), 0, static_cast<std::uint32_t>(size), true});
  return size;
}

/// The kernel's stamp in software: the first of three times.
std::int64_t stamp_of(msghdr& header) {
  for (cmsghdr* each = CMSG_FIRSTHDR(&header); each != nullptr; each = CMSG_NXTHDR(&header, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_TIMESTAMPING) continue;
    timespec time{};
    std::memcpy(&time, CMSG_DATA(each), sizeof time);
    return time.tv_sec * 1'000'000'000L + time.tv_nsec;
  }
  return 0;
}

/// Where the caller wants no control messages there is room of our own for them.
ssize_t note_receiving(int descriptor, msghdr& header, int flags) {
  alignas(cmsghdr) char control[256];
  const bool is_ours = header.msg_control == nullptr;
  if (is_ours) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
  const std::int64_t began = now_ns();
  const ssize_t size = FOLLOWING(recvmsg)(descriptor, &header, flags);
  if (size > 0) add({began, now_ns(), stamp_of(header), static_cast<std::uint32_t>(size), false});
  if (is_ours) {
    header.msg_control = nullptr;
    header.msg_controllen = 0;
    header.msg_flags &= ~MSG_CTRUNC;
  }
  return size;
}

/// Nothing of what is looked at twice, or is no data, moves a message.
bool is_moving(int flags) { return (flags & (MSG_PEEK | MSG_ERRQUEUE | MSG_OOB)) == 0; }

}  // namespace

extern "C" {

void fabricbench_note_socket_calls(SocketCallLog* log) { noted_in = log; }

ssize_t send(int descriptor, const void* data, size_t size, int flags) {
  const auto call = [&] { return FOLLOWING(send)(descriptor, data, size, flags); };
  return is_noted(descriptor) ? note_sending(call) : call();
}

ssize_t sendto(int descriptor, const void* data, size_t size, int flags, const sockaddr* to, socklen_t to_size) {
  const auto call = [&] { return FOLLOWING(sendto)(descriptor, data, size, flags, to, to_size); };
  return is_noted(descriptor) ? note_sending(call) : call();
}

ssize_t sendmsg(int descriptor, const msghdr* header, int flags) {
  const auto call = [&] { return FOLLOWING(sendmsg)(descriptor, header, flags); };
  return is_noted(descriptor) ? note_sending(call) : call();
}

ssize_t write(int descriptor, const void* data, size_t size) {
  const auto call = [&] { return FOLLOWING(write)(descriptor, data, size); };
  return is_noted(descriptor) ? note_sending(call) : call();
}

ssize_t writev(int descriptor, const iovec* parts, int count) {
  const auto call = [&] { return FOLLOWING(writev)(descriptor, parts, count); };
  return is_noted(descriptor) ? note_sending(call) : call();
}

ssize_t recv(int descriptor, void* data, size_t size, int flags) {
  if (!is_noted(descriptor) || !is_moving(flags)) return FOLLOWING(recv)(descriptor, data, size, flags);
  iovec part{data, size};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  return note_receiving(descriptor, header, flags);
}

ssize_t recvfrom(int descriptor, void* data, size_t size, int flags, sockaddr* from, socklen_t* from_size) {
  if (!is_noted(descriptor) || !is_moving(flags)) {
    return FOLLOWING(recvfrom)(descriptor, data, size, flags, from, from_size);
  }
  iovec part{data, size};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  const ssize_t moved = note_receiving(descriptor, header, flags);
  if (from != nullptr && from_size != nullptr) *from_size = 0;  // a connected stream tells of nobody
  return moved;
}

ssize_t recvmsg(int descriptor, msghdr* header, int flags) {
  if (!is_noted(descriptor) || !is_moving(flags)) return FOLLOWING(recvmsg)(descriptor, header, flags);
  return note_receiving(descriptor, *header, flags);
}

ssize_t read(int descriptor, void* data, size_t size) {
  if (!is_noted(descriptor)) return FOLLOWING(read)(descriptor, data, size);
  iovec part{data, size};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  return note_receiving(descriptor, header, 0);
}

ssize_t readv(int descriptor, const iovec* parts, int count) {
  if (!is_noted(descriptor) || count < 0) return FOLLOWING(readv)(descriptor, parts, count);
  msghdr header{};
  header.msg_iov = const_cast<iovec*>(parts);
  header.msg_iovlen = static_cast<size_t>(count);
  return note_receiving(descriptor, header, 0);
}
}
