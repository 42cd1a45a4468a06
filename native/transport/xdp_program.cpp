#include "transport/xdp_program.hpp"

#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "base/failure.hpp"
#include "transport/frame.hpp"

namespace fabricbench {
namespace {

constexpr std::string_view rights =
    "an XDP program needs CAP_NET_ADMIN, CAP_BPF and CAP_NET_RAW of the system itself: run as root, not in a user "
    "namespace, or take door packet or ring";

/// An instruction as the kernel has it (struct bpf_insn), whose registers are bit fields there.
struct Instruction {
  std::uint8_t code;
  std::uint8_t registers;
  std::int16_t offset;
  std::int32_t immediate;
};
static_assert(sizeof(Instruction) == sizeof(bpf_insn));

constexpr Instruction instruction(unsigned code, unsigned destination, unsigned source, int offset, int immediate) {
  const unsigned registers =
      std::endian::native == std::endian::little ? source << 4U | destination : destination << 4U | source;
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(registers), static_cast<std::int16_t>(offset),
          immediate};
}

constexpr Instruction load(unsigned size, unsigned destination, unsigned source, std::size_t offset) {
  return instruction(BPF_LDX | BPF_MEM | size, destination, source, static_cast<int>(offset), 0);
}
constexpr Instruction copy(unsigned destination, unsigned source) {
  return instruction(BPF_ALU64 | BPF_MOV | BPF_X, destination, source, 0, 0);
}
constexpr Instruction set(unsigned destination, int value) {
  return instruction(BPF_ALU64 | BPF_MOV | BPF_K, destination, 0, 0, value);
}
constexpr Instruction add(unsigned destination, int value) {
  return instruction(BPF_ALU64 | BPF_ADD | BPF_K, destination, 0, 0, value);
}
constexpr Instruction call(int function) { return instruction(BPF_JMP | BPF_CALL, 0, 0, 0, function); }

constexpr int ethernet_bytes = 14;
constexpr int type_offset = 12;
constexpr int token_bytes = 4;
constexpr int token_on_stack = -8;

/// r1 is the context (struct xdp_md) at the beginning; jumps count from the instruction behind them.
std::array<Instruction, 27> program_with(int tokens, int sockets) {
  return {
      copy(6, 1),
      load(BPF_W, 2, 1, offsetof(xdp_md, data)),
      load(BPF_W, 3, 1, offsetof(xdp_md, data_end)),
      copy(4, 2),
      add(4, ethernet_bytes + token_bytes),
      instruction(BPF_JMP | BPF_JGT | BPF_X, 4, 3, 19, 0),  // too short: to the end
      load(BPF_H, 4, 2, type_offset),
      instruction(BPF_JMP | BPF_JEQ | BPF_K, 4, 0, 1, htons(frame_type_forth)),
      instruction(BPF_JMP | BPF_JNE | BPF_K, 4, 0, 16, htons(frame_type_back)),
      load(BPF_W, 4, 2, ethernet_bytes),
      instruction(BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, 4, token_on_stack, 0),
      instruction(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, tokens),
      {},  // its other half
      copy(2, BPF_REG_10),
      add(2, token_on_stack),
      call(BPF_FUNC_map_lookup_elem),
      instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 8, 0),  // nobody's: to the end
      load(BPF_W, 2, 0, 0),
      load(BPF_W, 3, 6, offsetof(xdp_md, rx_queue_index)),
      instruction(BPF_ALU64 | BPF_ADD | BPF_X, 2, 3, 0, 0),
      instruction(BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, sockets),
      {},
      set(3, XDP_PASS),  // where there is no socket
      call(BPF_FUNC_redirect_map),
      instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
      set(0, XDP_PASS),
      instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
  };
}

std::uint64_t address_of(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

bpf_attr no_attributes() {
  bpf_attr attributes;
  std::memset(&attributes, 0, sizeof attributes);
  return attributes;
}

/// The result of bpf(2): a new descriptor where the command makes one. Interrupted loading is told by EAGAIN.
int call_bpf(bpf_cmd command, bpf_attr& attributes) {
  constexpr int tries = 5;
  for (int i = 1;; ++i) {
    const long result = syscall(SYS_bpf, command, &attributes, sizeof attributes);
    if (result >= 0 || errno != EAGAIN || i == tries) return static_cast<int>(result);
  }
}

[[noreturn]] void fail_to_load(const std::string& what) {
  if (errno == ENOSYS) {
    throw Failure(FailureCode::unsupported, what +
                                                " failed: this kernel has no eBPF (CONFIG_BPF_SYSCALL): take door "
                                                "packet or ring");
  }
  if (errno == EINVAL) {
    throw Failure(FailureCode::unsupported,
                  what +
                      " failed: this kernel has no AF_XDP (CONFIG_XDP_SOCKETS, Linux 5.10 or later): take door "
                      "packet or ring");
  }
  fail_with_errno(what, rights);
}

Descriptor make_map(bpf_map_type type, std::uint32_t entries, const std::string& name) {
  bpf_attr attributes = no_attributes();
  attributes.map_type = type;
  attributes.key_size = sizeof(std::uint32_t);
  attributes.value_size = sizeof(std::uint32_t);
  attributes.max_entries = entries;
  Descriptor map(call_bpf(BPF_MAP_CREATE, attributes));
  if (map.get() < 0) fail_to_load("bpf(a map of " + name + ")");
  return map;
}

Descriptor load_program(const Descriptor& tokens, const Descriptor& sockets) {
  const auto instructions = program_with(tokens.get(), sockets.get());
  bpf_attr attributes = no_attributes();
  attributes.prog_type = BPF_PROG_TYPE_XDP;
  attributes.expected_attach_type = BPF_XDP;
  attributes.insn_cnt = static_cast<std::uint32_t>(instructions.size());
  attributes.insns = address_of(instructions.data());
  attributes.license = address_of("none");
  Descriptor program(call_bpf(BPF_PROG_LOAD, attributes));
  if (program.get() < 0) fail_to_load("bpf(BPF_PROG_LOAD)");
  return program;
}

void put(const Descriptor& map, std::uint32_t key, std::uint32_t value) {
  bpf_attr attributes = no_attributes();
  attributes.map_fd = static_cast<std::uint32_t>(map.get());
  attributes.key = address_of(&key);
  attributes.value = address_of(&value);
  if (call_bpf(BPF_MAP_UPDATE_ELEM, attributes) < 0) fail_with_errno("bpf(BPF_MAP_UPDATE_ELEM)", rights);
}

/// Some drivers take the link down to make their queues anew. What stays down fails as such: nobody answers.
void wait_until_running(const Interface& interface) {
  constexpr int looks = 500;
  constexpr timespec between_looks{0, 10'000'000};
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  interface.name.copy(request.ifr_name, IFNAMSIZ - 1);
  for (int i = 0; i < looks; ++i) {
    if (ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0 || (request.ifr_flags & IFF_RUNNING) != 0) return;
    nanosleep(&between_looks, nullptr);
  }
}

[[noreturn]] void fail_to_attach(const Interface& interface, XdpMode mode) {
  const int error = errno;
  const bool is_native = mode == XdpMode::native;
  const std::string what =
      std::string("an XDP program in ") + (is_native ? "native" : "generic") + " mode on " + interface.name;
  const std::string otherwise = is_native ? "take door xdp (generic mode)" : "take door packet or ring";
  if (error == EBUSY || error == EEXIST) {
    throw Failure(FailureCode::unsupported,
                  what + " has no place: there is another program, of `ip link show " + interface.name +
                      "` or of another rank on this interface; place one rank a node, take that program away, or take "
                      "door packet or ring");
  }
  if (error == ERANGE || (is_native && error == EINVAL && interface.mtu > 1500)) {
    throw Failure(FailureCode::unsupported, what + " was refused: an MTU of " + std::to_string(interface.mtu) +
                                                " is more than its driver takes then, here or at the other end of a "
                                                "veth; set a smaller one (1500 is always taken), or " +
                                                otherwise);
  }
  if (error == EOPNOTSUPP || error == EINVAL || error == ENOSPC) {
    throw Failure(FailureCode::unsupported, what + " was refused (" + std::strerror(error) + "): " +
                                                (is_native ? "its driver has no such mode, or not with these queues; "
                                                           : "it takes Linux 5.9 or later; ") +
                                                otherwise);
  }
  fail_with_errno(error, what, rights);
}

}  // namespace

XdpProgram::XdpProgram(std::uint32_t paths, std::uint32_t queues)
    : queues_(queues),
      sockets_(make_map(BPF_MAP_TYPE_XSKMAP, paths * queues, "AF_XDP sockets")),
      tokens_(make_map(BPF_MAP_TYPE_HASH, paths, "tokens")),
      program_(load_program(tokens_, sockets_)) {}

void XdpProgram::attach(const Interface& interface, XdpMode mode) {
  if (link_.get() >= 0 && mode == mode_) return;
  link_ = Descriptor();  // both modes at once there cannot be
  bpf_attr attributes = no_attributes();
  attributes.link_create.prog_fd = static_cast<std::uint32_t>(program_.get());
  attributes.link_create.target_ifindex = static_cast<std::uint32_t>(interface.index);
  attributes.link_create.attach_type = BPF_XDP;
  attributes.link_create.flags = mode == XdpMode::native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
  link_ = Descriptor(call_bpf(BPF_LINK_CREATE, attributes));
  if (link_.get() < 0) fail_to_attach(interface, mode);
  mode_ = mode;
  wait_until_running(interface);
}

void XdpProgram::set_socket(std::uint32_t path, std::uint32_t queue, const Descriptor& socket) {
  put(sockets_, path * queues_ + queue, static_cast<std::uint32_t>(socket.get()));
}

void XdpProgram::set_token(std::uint32_t path, std::uint32_t token) { put(tokens_, token, path * queues_); }

void XdpProgram::forget_token(std::uint32_t token) {
  bpf_attr attributes = no_attributes();
  attributes.map_fd = static_cast<std::uint32_t>(tokens_.get());
  attributes.key = address_of(&token);
  call_bpf(BPF_MAP_DELETE_ELEM, attributes);  // whatever it says: the socket is closed next
}

}  // namespace fabricbench
