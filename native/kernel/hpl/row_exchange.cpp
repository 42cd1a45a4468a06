#include "kernel/hpl/row_exchange.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace fabricbench::hpl {

namespace {
constexpr int displaced_tag = 32;
constexpr int share_tag = 33;

/// Columns between the one whose rows are moved and the one whose rows are fetched into the caches meanwhile, which a
/// processor does not foresee: they lie where the pivots were. 1 to 4 are equally fast.
constexpr std::int64_t columns_ahead = 2;
}  // namespace

RowExchange::RowExchange(const Grid& grid, const Matrix& matrix, SwapKind kind)
    : grid_(grid),
      rows_(matrix.rows()),
      kind_(kind),
      doubling_(static_cast<int>(std::bit_floor(static_cast<unsigned>(grid.p())))),
      shares_(static_cast<std::size_t>(grid.p())),
      content_(static_cast<std::size_t>(matrix.n())),
      offsets_(static_cast<std::size_t>(grid.p()) + 1) {
  std::iota(content_.begin(), content_.end(), 0);
  const auto block = static_cast<std::size_t>(std::min(matrix.block(), matrix.n()));
  for (Share& share : shares_) {
    share.tops.reserve(block);
    share.displaced.reserve(block);
  }
  few_ = Buffer<double>(block);
  if (grid.p() == 1) return;
  gathered_ = Buffer<double>(block * static_cast<std::size_t>(matrix.own_columns()));
  displaced_ = Buffer<double>(block * static_cast<std::size_t>(matrix.own_columns()));
  requests_.reserve(shares_.size());
}

/// One exchange after the other, of numbers that stand for rows. Afterwards a row below the panel's own holds one of
/// those or what it held: a row that came up is the panel's own, and every exchange has one of these on one side.
void RowExchange::plan(const Panel& panel) {
  width_ = panel.width();
  panel_begin_ = panel.begin();
  owner_ = rows_.owner(panel.begin());
  const auto content = [this](std::int64_t row) -> std::int64_t& { return content_[static_cast<std::size_t>(row)]; };
  for (Share& share : shares_) {
    share.tops.clear();
    share.displaced.clear();
  }
  for (std::int64_t i = 0; i < width_; ++i) {
    std::swap(content(panel.begin() + i), content(static_cast<std::int64_t>(panel.pivots()[i])));
  }
  // Indices of a rank's own rows are the same computation for each of them.
  const auto own_index = [this](std::int64_t row) {
    return Dealt{rows_.block, rows_.processes, rows_.owner(row)}.own_below(row);
  };
  for (std::int64_t i = 0; i < width_; ++i) {
    const std::int64_t source = content(panel.begin() + i);
    Share& share = shares_[static_cast<std::size_t>(rows_.owner(source))];
    share.tops.push_back({i, own_index(source)});
  }
  for (std::int64_t i = 0; i < width_; ++i) {
    const auto row = static_cast<std::int64_t>(panel.pivots()[i]);
    if (row >= panel.end() && content(row) != row) {
      shares_[static_cast<std::size_t>(rows_.owner(row))].displaced.push_back(
          {own_index(row), own_index(content(row))});
      content(row) = row;
    }
  }
  for (std::int64_t i = 0; i < width_; ++i) content(panel.begin() + i) = panel.begin() + i;
  for (Share& share : shares_) {
    std::ranges::sort(share.tops, {}, &Moved::from);
    std::ranges::sort(share.displaced, {}, &Moved::row);
  }
  // Ranks beyond a power of two lie behind the one that speaks for them.
  std::int64_t offset = 0;
  for (int rank = 0; rank < doubling_; ++rank) {
    for (int each = rank; each < grid_.p(); each += doubling_) {
      offsets_[static_cast<std::size_t>(each)] = offset;
      offset += static_cast<std::int64_t>(shares_[static_cast<std::size_t>(each)].tops.size());
    }
  }
}

void RowExchange::apply(Matrix& matrix, std::int64_t first, std::int64_t end, double* top) {
  const std::int64_t count = end - first;
  if (count <= 0) return;
  if (grid_.p() == 1) {
    apply_alone(matrix, first, end);
    return;
  }
  const Share& own = shares_[static_cast<std::size_t>(grid_.own_row())];
  double* to = share_of(grid_.own_row(), count);
  for (std::int64_t column = first; column < end; ++column) {
    const double* const numbers = matrix.at(0, column);
    for (const Moved& moved : own.tops) *to++ = numbers[moved.from];
  }
  send_displaced(matrix, first, count);
  if (kind_ == SwapKind::binary) {
    share_binary(count);
  } else {
    share_around(count);
  }
  for (int rank = 0; rank < grid_.p(); ++rank) {
    const Share& share = shares_[static_cast<std::size_t>(rank)];
    const double* from = share_of(rank, count);
    for (std::int64_t column = 0; column < count; ++column) {
      for (const Moved& moved : share.tops) top[column * width_ + moved.row] = *from++;
    }
  }
  if (!requests_.empty()) {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    requests_.clear();
  }
  if (grid_.own_row() == owner_) {
    // Its own rows have been packed, and the panel's own rows are still what they were.
    for (std::int64_t column = first; column < end; ++column) {
      double* const numbers = matrix.at(0, column);
      for (const Moved& moved : own.displaced) numbers[moved.row] = numbers[moved.from];
    }
    return;
  }
  const double* from = displaced_.data();
  for (std::int64_t column = first; column < end; ++column) {
    double* const numbers = matrix.at(0, column);
    for (const Moved& moved : own.displaced) numbers[moved.row] = *from++;
  }
}

void RowExchange::apply_alone(Matrix& matrix, std::int64_t first, std::int64_t end) {
  const Share& share = shares_.front();
  for (std::int64_t column = first; column < end; ++column) {
    double* const numbers = matrix.at(0, column);
    const double* const ahead = column + columns_ahead < end ? matrix.at(0, column + columns_ahead) : numbers;
    for (const Moved& moved : share.tops) {
      __builtin_prefetch(ahead + moved.from, 1);
      few_[static_cast<std::size_t>(moved.row)] = numbers[moved.from];
    }
    for (const Moved& moved : share.displaced) numbers[moved.row] = numbers[moved.from];
    std::copy_n(few_.data(), share.tops.size(), numbers + panel_begin_);  // alone, our rows are those of the matrix
  }
}

/// To each rank the rows of the panel's that take the places of its own.
void RowExchange::send_displaced(const Matrix& matrix, std::int64_t first, std::int64_t count) {
  const auto numbers_in = [count](const Share& share) {
    return static_cast<int>(static_cast<std::int64_t>(share.displaced.size()) * count);
  };
  if (grid_.own_row() != owner_) {
    const Share& own = shares_[static_cast<std::size_t>(grid_.own_row())];
    if (own.displaced.empty()) return;
    requests_.emplace_back();
    MPI_Irecv(displaced_.data(), numbers_in(own), MPI_DOUBLE, owner_, displaced_tag, grid_.column(), &requests_.back());
    return;
  }
  double* to = displaced_.data();
  for (int step = 1; step < grid_.p(); ++step) {
    const int rank = (owner_ + step) % grid_.p();
    const Share& share = shares_[static_cast<std::size_t>(rank)];
    if (share.displaced.empty()) continue;
    double* const begin = to;
    for (std::int64_t column = first; column < first + count; ++column) {
      const double* const numbers = matrix.at(0, column);
      for (const Moved& moved : share.displaced) *to++ = numbers[moved.from];
    }
    requests_.emplace_back();
    MPI_Isend(begin, numbers_in(share), MPI_DOUBLE, rank, displaced_tag, grid_.column(), &requests_.back());
  }
}

double* RowExchange::share_of(int rank, std::int64_t count) {
  return gathered_.data() + offsets_[static_cast<std::size_t>(rank)] * count;
}

/// Of the shares of so many ranks below the power of two, with those for whom they speak.
std::int64_t RowExchange::numbers_of(int first_rank, int ranks, std::int64_t count) const {
  std::int64_t rows = 0;
  for (int rank = first_rank; rank < first_rank + ranks; ++rank) {
    for (int each = rank; each < grid_.p(); each += doubling_)
      rows += static_cast<std::int64_t>(shares_[static_cast<std::size_t>(each)].tops.size());
  }
  return rows * count;
}

void RowExchange::share_binary(std::int64_t count) {
  const int own = grid_.own_row();
  const auto size_of = [&](int rank) {
    return static_cast<int>(static_cast<std::int64_t>(shares_[static_cast<std::size_t>(rank)].tops.size()) * count);
  };
  const auto whole = static_cast<int>(width_ * count);
  if (own >= doubling_) {
    const int speaker = own - doubling_;
    MPI_Send(share_of(own, count), size_of(own), MPI_DOUBLE, speaker, share_tag, grid_.column());
    MPI_Recv(gathered_.data(), whole, MPI_DOUBLE, speaker, share_tag, grid_.column(), MPI_STATUS_IGNORE);
    return;
  }
  const int spoken_for = own + doubling_;
  if (spoken_for < grid_.p()) {
    MPI_Recv(share_of(spoken_for, count), size_of(spoken_for), MPI_DOUBLE, spoken_for, share_tag, grid_.column(),
             MPI_STATUS_IGNORE);
  }
  for (int distance = 1; distance < doubling_; distance *= 2) {
    const int partner = own ^ distance;
    const int first = own / distance * distance;
    const int its_first = partner / distance * distance;
    MPI_Sendrecv(share_of(first, count), static_cast<int>(numbers_of(first, distance, count)), MPI_DOUBLE, partner,
                 share_tag, share_of(its_first, count), static_cast<int>(numbers_of(its_first, distance, count)),
                 MPI_DOUBLE, partner, share_tag, grid_.column(), MPI_STATUS_IGNORE);
  }
  if (spoken_for < grid_.p()) {
    MPI_Send(gathered_.data(), whole, MPI_DOUBLE, spoken_for, share_tag, grid_.column());
  }
}

void RowExchange::share_around(std::int64_t count) {
  const int ranks = grid_.p();
  const int own = grid_.own_row();
  const int next = (own + 1) % ranks;
  const int before = (own - 1 + ranks) % ranks;
  const auto size_of = [&](int rank) {
    return static_cast<int>(static_cast<std::int64_t>(shares_[static_cast<std::size_t>(rank)].tops.size()) * count);
  };
  for (int step = 0; step + 1 < ranks; ++step) {
    const int leaves = (own - step + ranks) % ranks;
    const int comes = (leaves - 1 + ranks) % ranks;
    MPI_Sendrecv(share_of(leaves, count), size_of(leaves), MPI_DOUBLE, next, share_tag, share_of(comes, count),
                 size_of(comes), MPI_DOUBLE, before, share_tag, grid_.column(), MPI_STATUS_IGNORE);
  }
}

}  // namespace fabricbench::hpl
