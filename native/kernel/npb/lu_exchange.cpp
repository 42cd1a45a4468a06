#include "kernel/npb/lu_exchange.hpp"

#include <cstring>

namespace fabricbench::npb::ssor {
namespace {

constexpr int ghost_layers = 2;
constexpr int tag_upward = 11;  // to the neighbour with the higher coordinate
constexpr int tag_downward = 12;

// Swap with the lower and the upper neighbour; index 0 is the lower one. Buffers have one size.
void swap(MPI_Comm communicator, int lower, int upper, std::array<std::vector<double>, 2>& sent,
          std::array<std::vector<double>, 2>& received) {
  const auto count = [](const std::vector<double>& buffer) { return static_cast<int>(buffer.size()); };
  std::array<MPI_Request, 4> requests;
  MPI_Irecv(received[0].data(), count(received[0]), MPI_DOUBLE, lower, tag_upward, communicator, &requests[0]);
  MPI_Irecv(received[1].data(), count(received[1]), MPI_DOUBLE, upper, tag_downward, communicator, &requests[1]);
  MPI_Isend(sent[0].data(), count(sent[0]), MPI_DOUBLE, lower, tag_downward, communicator, &requests[2]);
  MPI_Isend(sent[1].data(), count(sent[1]), MPI_DOUBLE, upper, tag_upward, communicator, &requests[3]);
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

}  // namespace

GhostExchange::GhostExchange(const Tile& tile) : tile_(tile) {}

void GhostExchange::run(Field& u) {
  if (tile_.west != MPI_PROC_NULL || tile_.east != MPI_PROC_NULL) along_x(u);
  if (tile_.south != MPI_PROC_NULL || tile_.north != MPI_PROC_NULL) along_y(u);
}

// Columns travel as they lie in memory: the neighbour has the same rows in the same lanes.
void GhostExchange::along_x(Field& u) {
  const int slots = tile_.last_slot() - tile_.first_slot() + 1;
  constexpr std::size_t run = ghost_layers * sizeof(Points) / sizeof(double);
  for (auto* buffers : {&sent_, &received_}) {
    for (auto& buffer : *buffers) buffer.resize(std::size_t(slots) * std::size_t(tile_.strip) * run);
  }
  const auto each_row = [&](auto&& copy) {
    std::size_t at = 0;
    for (int slot = tile_.first_slot(); slot <= tile_.last_slot(); ++slot) {
      for (int row = 0; row < tile_.strip; ++row, at += run) copy(u.row(slot, row), at);
    }
  };
  each_row([&](const Points* row, std::size_t at) {
    std::memcpy(&sent_[0][at], row, run * sizeof(double));
    std::memcpy(&sent_[1][at], row + tile_.nx - ghost_layers, run * sizeof(double));
  });
  swap(tile_.communicator, tile_.west, tile_.east, sent_, received_);
  each_row([&](Points* row, std::size_t at) {
    if (tile_.west != MPI_PROC_NULL) std::memcpy(row - ghost_layers, &received_[0][at], run * sizeof(double));
    if (tile_.east != MPI_PROC_NULL) std::memcpy(row + tile_.nx, &received_[1][at], run * sizeof(double));
  });
}

// Rows are in one lane each, and not in the same one on either side.
void GhostExchange::along_y(Field& u) {
  const int planes = tile_.points - 2;
  const std::size_t row_doubles = std::size_t(tile_.nx) * components;
  for (auto* buffers : {&sent_, &received_}) {
    for (auto& buffer : *buffers) buffer.resize(std::size_t(planes) * ghost_layers * row_doubles);
  }
  const auto each_row = [&](int first_row, auto&& copy) {
    std::size_t at = 0;
    for (int k = 1; k <= planes; ++k) {
      for (int ghost = 0; ghost < ghost_layers; ++ghost, at += row_doubles) copy(u.at(0, first_row + ghost, k), at);
    }
  };
  const auto pack = [&](int first_row, std::vector<double>& buffer) {
    each_row(first_row, [&](const double* from, std::size_t at) {
      for (std::size_t c = 0; c < row_doubles; ++c) buffer[at + c] = from[c * lane_count];
    });
  };
  const auto unpack = [&](int first_row, const std::vector<double>& buffer) {
    each_row(first_row, [&](double* to, std::size_t at) {
      for (std::size_t c = 0; c < row_doubles; ++c) to[c * lane_count] = buffer[at + c];
    });
  };
  pack(0, sent_[0]);
  pack(tile_.ny - ghost_layers, sent_[1]);
  swap(tile_.communicator, tile_.south, tile_.north, sent_, received_);
  if (tile_.south != MPI_PROC_NULL) unpack(-ghost_layers, received_[0]);
  if (tile_.north != MPI_PROC_NULL) unpack(tile_.ny, received_[1]);
}

Inbox::Inbox(MPI_Comm communicator, int source, int tag, std::size_t doubles)
    : communicator_(communicator), source_(source), tag_(tag) {
  buffers_.fill(std::vector<double>(doubles, 0.0));
  requests_.fill(MPI_REQUEST_NULL);
}

void Inbox::start(int messages) {
  to_post_ = source_ == MPI_PROC_NULL ? 0 : messages;
  posted_ = taken_ = 0;
  for (std::size_t i = 0; i < depth; ++i) post();
}

void Inbox::post() {
  if (to_post_ == 0) return;
  --to_post_;
  auto& buffer = buffers_[posted_ % depth];
  MPI_Irecv(buffer.data(), static_cast<int>(buffer.size()), MPI_DOUBLE, source_, tag_, communicator_,
            &requests_[posted_ % depth]);
  ++posted_;
}

const double* Inbox::take() {
  if (taken_ > 0) post();  // into the buffer of the message before, which has served
  const std::size_t index = taken_ % depth;
  if (source_ != MPI_PROC_NULL) MPI_Wait(&requests_[index], MPI_STATUS_IGNORE);
  ++taken_;
  return buffers_[index].data();
}

Outbox::Outbox(MPI_Comm communicator, int destination, int tag, std::size_t doubles)
    : communicator_(communicator), destination_(destination), tag_(tag) {
  buffers_.fill(std::vector<double>(doubles, 0.0));
  requests_.fill(MPI_REQUEST_NULL);
}

double* Outbox::next() {
  const std::size_t index = count_ % depth;
  if (destination_ != MPI_PROC_NULL) MPI_Wait(&requests_[index], MPI_STATUS_IGNORE);
  return buffers_[index].data();
}

void Outbox::send() {
  const std::size_t index = count_ % depth;
  ++count_;
  if (destination_ == MPI_PROC_NULL) return;
  const auto& buffer = buffers_[index];
  MPI_Isend(buffer.data(), static_cast<int>(buffer.size()), MPI_DOUBLE, destination_, tag_, communicator_,
            &requests_[index]);
}

void Outbox::finish() { MPI_Waitall(static_cast<int>(depth), requests_.data(), MPI_STATUSES_IGNORE); }

}  // namespace fabricbench::npb::ssor
