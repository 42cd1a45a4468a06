// A first-in first-out queue in one piece of memory, which grows when it is full and never shrinks: no allocation in
// steady state.
#pragma once

#include <cstddef>
#include <vector>

namespace fabricbench::emulated_switch {

template <typename Item>
class Fifo {
 public:
  Fifo() : items_(kFirstCapacity) {}

  [[nodiscard]] bool empty() const { return head_ == tail_; }
  [[nodiscard]] const Item& front() const { return items_[head_ & (items_.size() - 1)]; }
  void pop() { ++head_; }

  void push(const Item& item) {
    if (tail_ - head_ == items_.size()) grow();
    items_[tail_++ & (items_.size() - 1)] = item;
  }

 private:
  static constexpr std::size_t kFirstCapacity = 1024;  // a power of two, as positions are masked

  void grow() {
    std::vector<Item> larger(items_.size() * 2);
    for (std::size_t i = head_; i != tail_; ++i) larger[i & (larger.size() - 1)] = items_[i & (items_.size() - 1)];
    items_.swap(larger);
  }

  std::vector<Item> items_;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
};

}  // namespace fabricbench::emulated_switch
