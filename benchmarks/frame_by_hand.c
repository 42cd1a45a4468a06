// What a person would write to send frames as fast as each door lets one, and no more: the reference of frame_doors.py.
// On one interface whose other end runs the same program in another network namespace. A receiver spins, or sleeps
// where nothing has come.
//
//   frame_by_hand INTERFACE packet|ring|xdp|xdp-native lead|follow|send|count SECONDS BYTES spin|sleep
//
// `lead` prints the median round trip in ns, `count` the frames that came in a second; both say READY on stderr first.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { FRAMES = 2048, CHUNK = 2048, TYPE = 0x88b5, BATCH = 32, MOST = 4000000 };
enum door { PACKET, RING, XDP };

struct ring {
  uint32_t *producer, *consumer;
  void* entries;
};

static enum door door;
static int fd, ifindex, sleeps;
static struct sockaddr_ll to;
static uint8_t* slots;  // of RING
static uint32_t next_slot;
static uint8_t* umem;
static struct ring fill, done, came, out;
static uint8_t frame[CHUNK];
static size_t payload_bytes;

static void need(int good, const char* what) {
  if (good) return;
  perror(what);
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void open_packet(void) {
  const int yes = 1, version = TPACKET_V2, buffer = 8 << 20;
  fd = socket(AF_PACKET, SOCK_DGRAM, 0);
  need(fd >= 0, "socket(AF_PACKET)");
  setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
  const struct timeval bound = {0, 100000};
  if (sleeps) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
  if (door == RING) {
    struct tpacket_req request = {128 * 1024, FRAMES * CHUNK / (128 * 1024), CHUNK, FRAMES};
    need(setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) == 0, "PACKET_VERSION");
    need(setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request) == 0, "PACKET_RX_RING");
    slots = mmap(NULL, FRAMES * CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    need(slots != MAP_FAILED, "mmap");
  }
  to.sll_family = AF_PACKET;
  to.sll_protocol = htons(TYPE);
  to.sll_ifindex = ifindex;
  need(bind(fd, (struct sockaddr*)&to, sizeof to) == 0, "bind");
  to.sll_halen = 6;
  memset(to.sll_addr, 0xff, 6);
}

static struct ring map_ring(int entries, off_t where, const struct xdp_ring_offset* offsets, size_t size) {
  uint8_t* memory = mmap(NULL, offsets->desc + (size_t)entries * size, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_POPULATE, fd, where);
  need(memory != MAP_FAILED, "mmap(ring)");
  return (struct ring){(uint32_t*)(memory + offsets->producer), (uint32_t*)(memory + offsets->consumer),
                       memory + offsets->desc};
}

static long bpf(int command, union bpf_attr* attributes) {
  return syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

static void open_xdp(int is_native) {
  const int entries = FRAMES, queue = 0;
  umem = mmap(NULL, 2 * FRAMES * CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  need(umem != MAP_FAILED, "mmap");
  fd = socket(AF_XDP, SOCK_RAW, 0);
  need(fd >= 0, "socket(AF_XDP)");
  struct xdp_umem_reg memory = {.addr = (uintptr_t)umem, .len = 2 * FRAMES * CHUNK, .chunk_size = CHUNK};
  need(setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &memory, sizeof memory) == 0, "XDP_UMEM_REG");
  need(setsockopt(fd, SOL_XDP, XDP_UMEM_FILL_RING, &entries, sizeof entries) == 0, "FILL");
  need(setsockopt(fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, &entries, sizeof entries) == 0, "COMPLETION");
  need(setsockopt(fd, SOL_XDP, XDP_RX_RING, &entries, sizeof entries) == 0, "RX");
  need(setsockopt(fd, SOL_XDP, XDP_TX_RING, &entries, sizeof entries) == 0, "TX");
  struct xdp_mmap_offsets at;
  socklen_t size = sizeof at;
  need(getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &size) == 0, "XDP_MMAP_OFFSETS");
  fill = map_ring(FRAMES, (off_t)XDP_UMEM_PGOFF_FILL_RING, &at.fr, 8);
  done = map_ring(FRAMES, (off_t)XDP_UMEM_PGOFF_COMPLETION_RING, &at.cr, 8);
  came = map_ring(FRAMES, XDP_PGOFF_RX_RING, &at.rx, sizeof(struct xdp_desc));
  out = map_ring(FRAMES, (off_t)XDP_PGOFF_TX_RING, &at.tx, sizeof(struct xdp_desc));
  for (uint64_t i = 0; i < FRAMES; ++i) ((uint64_t*)fill.entries)[i] = i * CHUNK;
  __atomic_store_n(fill.producer, FRAMES, __ATOMIC_RELEASE);
  struct sockaddr_xdp address = {.sxdp_family = AF_XDP, .sxdp_flags = XDP_COPY, .sxdp_ifindex = (uint32_t)ifindex};
  int bound = -1;
  for (int i = 0; i < 150 && bound != 0; ++i) {  // the queue of a socket that is closed stays taken for a while
    bound = bind(fd, (struct sockaddr*)&address, sizeof address);
    if (bound != 0) usleep(20000);
  }
  need(bound == 0, "bind(AF_XDP)");

  union bpf_attr make = {.map_type = BPF_MAP_TYPE_XSKMAP, .key_size = 4, .value_size = 4, .max_entries = 1};
  const int map = (int)bpf(BPF_MAP_CREATE, &make);
  need(map >= 0, "BPF_MAP_CREATE");
  const struct bpf_insn program[] = {
      {.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 2, .src_reg = 1, .off = 16},
      {.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD, .imm = map},
      {0},
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = XDP_PASS},
      {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map},
      {.code = BPF_JMP | BPF_EXIT},
  };
  union bpf_attr load = {.prog_type = BPF_PROG_TYPE_XDP,
                         .insn_cnt = sizeof program / sizeof *program,
                         .insns = (uintptr_t)program,
                         .license = (uintptr_t) "none",
                         .expected_attach_type = BPF_XDP};
  const int loaded = (int)bpf(BPF_PROG_LOAD, &load);
  need(loaded >= 0, "BPF_PROG_LOAD");
  union bpf_attr put = {.map_fd = (uint32_t)map, .key = (uintptr_t)&queue, .value = (uintptr_t)&fd};
  need(bpf(BPF_MAP_UPDATE_ELEM, &put) == 0, "BPF_MAP_UPDATE_ELEM");
  union bpf_attr attach = {.link_create = {.prog_fd = (uint32_t)loaded,
                                           .target_ifindex = (uint32_t)ifindex,
                                           .attach_type = BPF_XDP,
                                           .flags = is_native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE}};
  need(bpf(BPF_LINK_CREATE, &attach) >= 0, "BPF_LINK_CREATE");
  for (int i = 0; i < FRAMES; ++i) {  // every frame to be sent is there from the beginning
    struct ethhdr* header = (struct ethhdr*)(umem + (size_t)(FRAMES + i) * CHUNK);
    memset(header->h_dest, 0xff, 6);
    memset(header->h_source, 2, 6);
    header->h_proto = htons(TYPE);
  }
}

/// So many frames at once, the payload in all of them.
static void send_frames(uint32_t count) {
  if (door != XDP) {
    for (uint32_t i = 0; i < count; ++i) {
      while (sendto(fd, frame, payload_bytes, 0, (struct sockaddr*)&to, sizeof to) < 0) need(errno == ENOBUFS, "sendto");
    }
    return;
  }
  const uint32_t completed = __atomic_load_n(done.producer, __ATOMIC_ACQUIRE);
  const uint32_t made = *out.producer;
  if (made + count - completed > FRAMES) {
    sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0);
    return;
  }
  __atomic_store_n(done.consumer, completed, __ATOMIC_RELEASE);
  for (uint32_t i = 0; i < count; ++i) {
    // Chunks come back in the order in which they were sent; a single one in flight is always the same.
    const uint64_t chunk = (uint64_t)(FRAMES + (count == 1 ? 0 : (made + i) % FRAMES)) * CHUNK;
    memcpy(umem + chunk + ETH_HLEN, frame, payload_bytes);
    ((struct xdp_desc*)out.entries)[(made + i) % FRAMES] =
        (struct xdp_desc){.addr = chunk, .len = (uint32_t)(ETH_HLEN + payload_bytes)};
  }
  __atomic_store_n(out.producer, made + count, __ATOMIC_RELEASE);
  sendto(fd, NULL, 0, MSG_DONTWAIT, NULL, 0);
}

/// One frame, if one has come.
static int take_at_once(void) {
  if (door == PACKET) return recv(fd, frame, sizeof frame, sleeps ? 0 : MSG_DONTWAIT) > 0;
  if (door == RING) {
    struct tpacket2_hdr* slot = (struct tpacket2_hdr*)(slots + (size_t)next_slot * CHUNK);
    if (!(__atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) return 0;
    memcpy(frame, (uint8_t*)slot + slot->tp_net, payload_bytes);
    __atomic_store_n(&slot->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    next_slot = (next_slot + 1) % FRAMES;
    return 1;
  }
  const uint32_t taken = *came.consumer;
  if (__atomic_load_n(came.producer, __ATOMIC_ACQUIRE) == taken) return 0;
  const struct xdp_desc got = ((struct xdp_desc*)came.entries)[taken % FRAMES];
  memcpy(frame, umem + got.addr + ETH_HLEN, payload_bytes);
  __atomic_store_n(came.consumer, taken + 1, __ATOMIC_RELEASE);
  ((uint64_t*)fill.entries)[*fill.producer % FRAMES] = got.addr;
  __atomic_store_n(fill.producer, *fill.producer + 1, __ATOMIC_RELEASE);
  return 1;
}

/// One frame; a sleeper waits up to 100 ms for it.
static int take_frame(void) {
  if (take_at_once()) return 1;
  if (!sleeps || door == PACKET) return 0;
  struct pollfd entry = {fd, POLLIN, 0};
  return poll(&entry, 1, 100) > 0 && take_at_once();
}

static int compare(const void* one, const void* other) {
  const uint32_t a = *(const uint32_t*)one, b = *(const uint32_t*)other;
  return (a > b) - (a < b);
}

int main(int argc, char** argv) {
  need(argc == 7, "six arguments");
  ifindex = (int)if_nametoindex(argv[1]);
  need(ifindex > 0, argv[1]);
  door = strcmp(argv[2], "packet") == 0 ? PACKET : strcmp(argv[2], "ring") == 0 ? RING : XDP;
  const char* role = argv[3];
  const uint64_t length = (uint64_t)(atof(argv[4]) * 1e9);
  payload_bytes = (size_t)atoi(argv[5]);
  sleeps = strcmp(argv[6], "sleep") == 0;
  door == XDP ? open_xdp(strcmp(argv[2], "xdp-native") == 0) : open_packet();
  fprintf(stderr, "READY\n");
  const int is_flow = role[0] == 's' || role[0] == 'c';
  if (strcmp(role, "follow") == 0 || strcmp(role, "send") == 0) getchar();  // the other end is there as well
  const uint64_t begin = now_ns();
  if (strcmp(role, "follow") == 0) {
    while (now_ns() < begin + length + 300000000) {  // it began first
      for (int i = 0; i < (sleeps ? 1 : 1000); ++i) {
        if (take_frame()) send_frames(1);
      }
    }
  } else if (strcmp(role, "send") == 0) {
    while (now_ns() < begin + length) send_frames(BATCH);
  } else if (!is_flow) {
    getchar();
    static uint32_t times[MOST];
    int count = 0;
    const uint64_t start = now_ns();
    for (uint64_t end = start; end < start + length && count < MOST;) {
      const uint64_t sent = now_ns();
      const uint64_t number = (uint64_t)count;
      memcpy(frame, &number, sizeof number);
      send_frames(1);
      for (int tries = 1; !take_frame() || memcmp(frame, &number, sizeof number) != 0; ++tries) {
        if ((sleeps || tries % 4096 == 0) && now_ns() > sent + 100000000) break;  // lost
      }
      end = now_ns();
      times[count++] = (uint32_t)(end - sent);
    }
    qsort(times, (size_t)count, sizeof *times, compare);
    printf("%u\n", times[count / 2]);
  } else {
    uint64_t first = 0, last = 0, frames = 0;
    for (uint64_t now = begin; now < (first ? first + length : begin + 10000000000u); now = now_ns()) {
      for (int i = 0; i < (sleeps ? 1 : 64); ++i) {
        if (!take_frame()) continue;
        if (!first) first = now;
        ++frames;
        last = now;
      }
    }
    printf("%.0f\n", last > first ? (double)frames * 1e9 / (double)(last - first) : 0.0);
  }
  return 0;
}
