// A rank's part in the traffic of a step: the groups that it is in, its messages, and the walk through the
// instructions.
//
// Each kind of traffic has a call of its own, so that the frame's profile tells them apart: gradients MPI_Iallreduce,
// activations MPI_Allreduce, tokens MPI_Alltoall, stages MPI_Isend. Looks at what is under way while the accelerator is
// busy are PMPI's: they are no waiting, and the profile's share of communication is that which is exposed.
#pragma once

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernel/frame/buffer.hpp"
#include "kernel/frame/kernel.hpp"
#include "kernel/training/accelerator.hpp"
#include "kernel/training/content.hpp"
#include "kernel/training/schedule.hpp"

namespace fabricbench::training {

template <class Element>
MPI_Datatype element_type();
template <>
inline MPI_Datatype element_type<std::uint16_t>() {
  return MPI_UINT16_T;
}
template <>
inline MPI_Datatype element_type<std::uint32_t>() {
  return MPI_UINT32_T;
}
template <>
inline MPI_Datatype element_type<std::uint64_t>() {
  return MPI_UINT64_T;
}

/// Ranks that reduce or exchange together.
class Group {
 public:
  /// Those of the same color, by key. Collective.
  Group(MPI_Comm all, int color, int key) {
    MPI_Comm_split(all, color, key, &communicator_);
    MPI_Comm_size(communicator_, &size_);
    MPI_Comm_rank(communicator_, &member_);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() { MPI_Comm_free(&communicator_); }
  MPI_Comm communicator() const { return communicator_; }
  int size() const { return size_; }
  int member() const { return member_; }

 private:
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int size_ = 1;
  int member_ = 0;
};

/// Elements or messages that are not what they must be.
struct Wrong {
  double gradients = 0;
  double activations = 0;
  double tokens = 0;
  double stages = 0;
};

template <class Element>
class Exchange {
 public:
  /// Collective over the communicator, which must outlive this. Throws std::bad_alloc.
  Exchange(MPI_Comm communicator, const Dimensions& dimensions, const Grid& grid, int rank)
      : communicator_(communicator),
        place_(place_of(grid, rank)),
        step_(make_step(dimensions, grid, place_.stage)),
        sizes_(sizes_of(dimensions, grid)),
        data_(communicator, place_.stage * grid.tensor + place_.tensor, place_.data),
        tensor_(communicator, place_.stage * grid.data + place_.data, place_.tensor),
        experts_(data_.communicator(), place_.data / expert_group(dimensions, grid), place_.data),
        same_experts_(data_.communicator(), place_.data % expert_group(dimensions, grid), place_.data),
        dense_(gradients(false)),
        of_experts_(gradients(true)),
        activations_(grid.tensor > 1 ? sizes_.activations : 0),
        tokens_(experts_.size() > 1 ? sizes_.tokens * static_cast<std::size_t>(experts_.size()) : 0),
        requests_(step_.buckets.size() + sends, MPI_REQUEST_NULL),
        done_(requests_.size()) {
    const bool has_before = place_.stage > 0;
    const bool has_behind = place_.stage + 1 < grid.pipeline;
    if (has_before) before_ = rank_at(grid, {place_.data, place_.tensor, place_.stage - 1});
    if (has_behind) behind_ = rank_at(grid, {place_.data, place_.tensor, place_.stage + 1});
    if (!has_before && !has_behind) return;
    for (Buffer& each : outgoing_) each = Buffer(sizes_.activations);
    incoming_ = Buffer(sizes_.activations);
  }

  const Step& step() const { return step_; }
  const Wrong& wrong() const { return wrong_; }
  /// Messages and reductions that came to their end while the accelerator was busy.
  std::uint64_t ended_meanwhile() const { return ended_meanwhile_; }

  /// Walk through instructions that this rank's step has, as all ranks do. `Places` are those of each message that are
  /// written before it goes and looked at when it has come; without traffic messages between stages are empty.
  template <class Places>
  void walk(std::span<const Instruction> instructions, bool has_traffic) {
    stage_elements_ = has_traffic ? sizes_.activations : 0;
    accelerator_.wait_for_host();
    for (const Instruction& each : instructions) {
      switch (each.act) {
        case Act::compute:
          accelerator_.compute(each.value, [this](std::uint64_t deadline) { drive_until(deadline); });
          break;
        case Act::reduce_activations:
          reduce_activations<Places>();
          break;
        case Act::exchange_tokens:
          exchange_tokens<Places>();
          break;
        case Act::receive_activations:
          receive<Places>(before_, forward);
          break;
        case Act::send_activations:
          send<Places>(behind_, forward);
          break;
        case Act::receive_gradients:
          receive<Places>(behind_, backward);
          break;
        case Act::send_gradients:
          send<Places>(before_, backward);
          break;
        case Act::reduce_bucket:
          begin_bucket<Places>(each.value);
          break;
      }
    }
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    if (begun_ > 0) look_at_gradients<Places>();
  }

  /// Of the gradients that were reduced last.
  std::uint64_t fingerprint() const {
    const std::uint64_t dense = kernel::fingerprint(dense_.in.data(), dense_.in.size() * sizeof(Element));
    return kernel::fingerprint(of_experts_.in.data(), of_experts_.in.size() * sizeof(Element), dense);
  }
  /// Whether another gradient than the first one of its group came out here. Collective.
  bool differs() const {
    const auto differs_in = [](const Pair& pair, const Group& group) {
      const std::uint64_t own = kernel::fingerprint(pair.in.data(), pair.in.size() * sizeof(Element));
      std::uint64_t first = own;
      MPI_Bcast(&first, 1, MPI_UINT64_T, 0, group.communicator());
      return first != own;
    };
    const bool is_dense = differs_in(dense_, data_);
    return differs_in(of_experts_, same_experts_) || is_dense;
  }

 private:
  using Buffer = kernel::Buffer<Element>;
  /// What a rank has, and what it gets for it.
  struct Pair {
    explicit Pair(std::size_t elements) : out(elements), in(elements) {}
    Buffer out;
    Buffer in;
  };

  // Directions of messages between stages, which are their tags as well.
  static constexpr int forward = 0;
  static constexpr int backward = 1;
  static constexpr std::size_t turns = 2;  // of buffers for messages that are sent in one direction
  static constexpr std::size_t sends = 2 * turns;

  /// A look of the preload for shared processors may sleep as long, where none came (native/yield).
  static constexpr std::uint64_t longest_look_ns = 200'000;
  static constexpr std::uint64_t nap_ns = 20'000;

  Pair gradients(bool are_of_experts) const {
    std::size_t elements = 0;
    for (const Bucket& each : step_.buckets) elements += each.is_of_experts == are_of_experts ? each.elements : 0;
    return Pair(elements);
  }

  /// Have messages moved until the accelerator is ready. Where ranks have processors of their own this looks all the
  /// time; where they share them the preload has it sleep until something comes.
  void drive_until(std::uint64_t deadline_ns) {
    for (std::uint64_t now = Clock::now(); now < deadline_ns; now = Clock::now()) {
      int completed = 0;
      PMPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &completed, done_.data(),
                    MPI_STATUSES_IGNORE);
      if (completed == MPI_UNDEFINED) {
        sleep_until(deadline_ns);
        continue;
      }
      ended_meanwhile_ += static_cast<std::uint64_t>(completed);
      if (deadline_ns > now + longest_look_ns) {
        sched_yield();
      } else {
        sleep_until(std::min(deadline_ns, now + nap_ns));
      }
    }
  }

  template <class Places>
  void reduce_activations() {
    const std::uint64_t mark = reductions_++;
    Places::visit(sizes_.activations,
                  [&](std::size_t i) { activations_.out[i] = element_of<Element>(tensor_.member(), mark, i); });
    MPI_Allreduce(activations_.out.data(), activations_.in.data(), static_cast<int>(sizes_.activations),
                  element_type<Element>(), MPI_SUM, tensor_.communicator());
    Places::visit(sizes_.activations, [&](std::size_t i) {
      wrong_.activations += activations_.in[i] != sum_of<Element>(tensor_.size(), mark, i);
    });
    accelerator_.wait_for_host();
  }

  template <class Places>
  void exchange_tokens() {
    const std::uint64_t mark = exchanges_++;
    const auto members = static_cast<std::uint64_t>(experts_.size());
    // Block b is for member b: its mark says so.
    for (std::uint64_t to = 0; to < members; ++to) {
      Places::visit(sizes_.tokens, [&](std::size_t i) {
        tokens_.out[to * sizes_.tokens + i] = element_of<Element>(experts_.member(), mark * members + to, i);
      });
    }
    MPI_Alltoall(tokens_.out.data(), static_cast<int>(sizes_.tokens), element_type<Element>(), tokens_.in.data(),
                 static_cast<int>(sizes_.tokens), element_type<Element>(), experts_.communicator());
    const std::uint64_t own_mark = mark * members + static_cast<std::uint64_t>(experts_.member());
    for (std::uint64_t from = 0; from < members; ++from) {
      Places::visit(sizes_.tokens, [&](std::size_t i) {
        wrong_.tokens +=
            tokens_.in[from * sizes_.tokens + i] != element_of<Element>(static_cast<int>(from), own_mark, i);
      });
    }
    accelerator_.wait_for_host();
  }

  template <class Places>
  void send(int to, int direction) {
    std::uint64_t& number = sent_[static_cast<std::size_t>(direction)];
    const std::size_t slot = static_cast<std::size_t>(direction) * turns + number % turns;
    MPI_Request& request = requests_[step_.buckets.size() + slot];
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    Buffer& content = outgoing_[slot];
    if (stage_elements_ > 0) {
      Places::visit(stage_elements_, [&](std::size_t i) { content[i] = element_of<Element>(place_.stage, number, i); });
    }
    ++number;
    MPI_Isend(content.data(), static_cast<int>(stage_elements_), element_type<Element>(), to, direction, communicator_,
              &request);
  }

  template <class Places>
  void receive(int from, int direction) {
    const std::uint64_t number = received_[static_cast<std::size_t>(direction)]++;
    MPI_Recv(incoming_.data(), static_cast<int>(stage_elements_), element_type<Element>(), from, direction,
             communicator_, MPI_STATUS_IGNORE);
    if (stage_elements_ > 0) {
      const int stage = place_.stage + (direction == forward ? -1 : 1);
      Places::visit(stage_elements_,
                    [&](std::size_t i) { wrong_.stages += incoming_[i] != element_of<Element>(stage, number, i); });
    }
    accelerator_.wait_for_host();
  }

  template <class Places>
  void begin_bucket(std::uint64_t number) {
    const Bucket& bucket = step_.buckets[number];
    Pair& pair = bucket.is_of_experts ? of_experts_ : dense_;
    const Group& group = bucket.is_of_experts ? same_experts_ : data_;
    const std::uint64_t mark = reduced_ + number;
    Element* const out = pair.out.data() + bucket.begin;
    Places::visit(bucket.elements, [&](std::size_t i) { out[i] = element_of<Element>(group.member(), mark, i); });
    MPI_Iallreduce(out, pair.in.data() + bucket.begin, static_cast<int>(bucket.elements), element_type<Element>(),
                   MPI_SUM, group.communicator(), &requests_[number]);
    ++begun_;
  }

  template <class Places>
  void look_at_gradients() {
    for (std::size_t number = 0; number < step_.buckets.size(); ++number) {
      const Bucket& bucket = step_.buckets[number];
      const Element* const in = (bucket.is_of_experts ? of_experts_ : dense_).in.data() + bucket.begin;
      const int members = (bucket.is_of_experts ? same_experts_ : data_).size();
      Places::visit(bucket.elements, [&](std::size_t i) {
        wrong_.gradients += in[i] != sum_of<Element>(members, reduced_ + number, i);
      });
    }
    reduced_ += begun_;
    begun_ = 0;
  }

  MPI_Comm communicator_;
  Place place_;
  Step step_;
  Sizes sizes_;
  Group data_;
  Group tensor_;
  Group experts_;
  Group same_experts_;
  Pair dense_;
  Pair of_experts_;
  Pair activations_;
  Pair tokens_;
  std::array<Buffer, sends> outgoing_;
  Buffer incoming_;
  int before_ = MPI_PROC_NULL;
  int behind_ = MPI_PROC_NULL;
  std::vector<MPI_Request> requests_;  // of buckets, then of messages that are sent to stages
  std::vector<int> done_;
  std::size_t stage_elements_ = 0;
  Accelerator accelerator_;
  Wrong wrong_;
  std::uint64_t ended_meanwhile_ = 0;
  // How many of each kind there were: the marks of messages, the same on both sides of each.
  std::uint64_t reductions_ = 0;
  std::uint64_t exchanges_ = 0;
  std::array<std::uint64_t, 2> sent_{};
  std::array<std::uint64_t, 2> received_{};
  std::uint64_t reduced_ = 0;  // buckets of the steps before
  std::uint64_t begun_ = 0;
};

}  // namespace fabricbench::training
