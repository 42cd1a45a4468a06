// A = sum over i of w_i x_i x_i^T + (0.1 - shift) I, with sparse random vectors x_i and weights w_i that fall
// geometrically from 1 to 0.1. Blocks are made in two passes over the vectors, one that counts and one that fills, so
// that no more is held than what is kept.
#include "kernel/npb/cg_matrix.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "kernel/npb/random.hpp"

namespace fabricbench::npb {

namespace {

constexpr double condition = 0.1;  // the reciprocal condition number of the sum
constexpr double diagonal_entry = 0.5;
constexpr std::uint64_t seed = 314159265;

struct Entry {
  std::size_t position;
  double value;
};

// x_0, x_1, ... one after the other.
class SparseVectors {
 public:
  explicit SparseVectors(const CgMatrix& matrix)
      : rows_(matrix.rows),
        drawn_(matrix.vector_entries),
        position_scale_(static_cast<double>(std::bit_ceil(std::max<std::size_t>(matrix.rows, 2)))),
        last_vector_with_(matrix.rows, 0) {
    random_.next();  // the specification begins with the second number
  }

  // The positions are distinct; that of the vector itself is among them.
  const std::vector<Entry>& next() {
    ++made_;
    entries_.clear();
    while (entries_.size() < drawn_) {
      const double value = random_.next();
      const auto position = static_cast<std::size_t>(position_scale_ * random_.next());
      if (position >= rows_ || last_vector_with_[position] == made_) continue;
      last_vector_with_[position] = made_;
      entries_.push_back({position, value});
    }
    const std::size_t own = made_ - 1;
    const auto found =
        std::find_if(entries_.begin(), entries_.end(), [own](const Entry& e) { return e.position == own; });
    if (found != entries_.end()) {
      found->value = diagonal_entry;
    } else {
      entries_.push_back({own, diagonal_entry});
    }
    return entries_;
  }

 private:
  std::size_t rows_;
  std::size_t drawn_;
  double position_scale_;
  Random random_{seed};
  std::size_t made_ = 0;
  std::vector<std::size_t> last_vector_with_;
  std::vector<Entry> entries_;
};

void keep_within(IndexRange range, const std::vector<Entry>& entries, std::vector<Entry>& kept) {
  kept.clear();
  for (const auto& entry : entries) {
    if (range.contains(entry.position)) kept.push_back({entry.position - range.begin, entry.value});
  }
}

}  // namespace

template <typename Column>
SparseBlock<Column>::SparseBlock(const CgMatrix& matrix, IndexRange rows, IndexRange columns)
    : row_begins_(rows.size() + 1) {
  count_entries(matrix, rows, columns);
  columns_ = Buffer<Column>(entries());
  values_ = Buffer<double>(entries());
  fill(matrix, rows, columns);
  merge_duplicates(columns.size());
}

template <typename Column>
void SparseBlock<Column>::count_entries(const CgMatrix& matrix, IndexRange rows, IndexRange columns) {
  SparseVectors vectors(matrix);
  for (std::size_t i = 0; i < matrix.rows; ++i) {
    std::size_t in_columns = 0;
    const auto& entries = vectors.next();
    for (const auto& entry : entries) in_columns += columns.contains(entry.position) ? 1U : 0U;
    for (const auto& entry : entries) {
      if (rows.contains(entry.position)) row_begins_[entry.position - rows.begin + 1] += in_columns;
    }
  }
  for (std::size_t row = 0; row < rows.size(); ++row) row_begins_[row + 1] += row_begins_[row];
}

template <typename Column>
void SparseBlock<Column>::fill(const CgMatrix& matrix, IndexRange rows, IndexRange columns) {
  SparseVectors vectors(matrix);
  std::vector<std::size_t> ends(row_begins_.data(), row_begins_.data() + rows.size());
  std::vector<Entry> in_rows;
  std::vector<Entry> in_columns;
  const double ratio = std::pow(condition, 1 / static_cast<double>(matrix.rows));
  double weight = 1;
  for (std::size_t i = 0; i < matrix.rows; ++i, weight *= ratio) {
    const auto& entries = vectors.next();
    keep_within(rows, entries, in_rows);
    keep_within(columns, entries, in_columns);
    for (const auto& column : in_columns) {
      const double scaled = weight * column.value;
      for (const auto& row : in_rows) {
        double value = row.value * scaled;
        const bool is_diagonal = row.position + rows.begin == i && column.position + columns.begin == i;
        if (is_diagonal) value += condition - matrix.shift;
        const std::size_t place = ends[row.position]++;
        columns_[place] = static_cast<Column>(column.position);
        values_[place] = value;
      }
    }
  }
}

// Sums entries of one position in the order in which they were made, and sorts each row by column: the rows of x are
// then read in one direction. Rows only shrink, so they move to the front in place.
template <typename Column>
void SparseBlock<Column>::merge_duplicates(std::size_t columns) {
  std::vector<double> sums(columns);
  std::vector<std::size_t> last_row_with(columns, 0);
  std::vector<Column> present;
  std::size_t place = 0;
  std::size_t begin = 0;
  for (std::size_t row = 0; row + 1 < row_begins_.size(); ++row) {
    const std::size_t end = row_begins_[row + 1];
    present.clear();
    for (std::size_t e = begin; e < end; ++e) {
      const Column column = columns_[e];
      if (last_row_with[column] != row + 1) {
        last_row_with[column] = row + 1;
        sums[column] = 0;
        present.push_back(column);
      }
      sums[column] += values_[e];
    }
    std::sort(present.begin(), present.end());
    for (const Column column : present) {
      columns_[place] = column;
      values_[place++] = sums[column];
    }
    begin = end;
    row_begins_[row + 1] = place;
  }
}

template <typename Column>
void SparseBlock<Column>::multiply(const double* x, double* y) const {
  // One sum would wait for itself at each entry.
  constexpr std::size_t sums = 8;
  const Column* const columns = columns_.data();
  const double* const values = values_.data();
  const std::size_t* const begins = row_begins_.data();
  const std::size_t rows = row_begins_.size() - 1;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t end = begins[row + 1];
    std::size_t e = begins[row];
    double sum[sums] = {};
    for (; e + sums <= end; e += sums) {
      for (std::size_t s = 0; s < sums; ++s) sum[s] += values[e + s] * x[columns[e + s]];
    }
    double rest = 0;
    for (; e < end; ++e) rest += values[e] * x[columns[e]];
    y[row] = ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7])) + rest;
  }
}

template class SparseBlock<std::uint16_t>;
template class SparseBlock<std::uint32_t>;

}  // namespace fabricbench::npb
