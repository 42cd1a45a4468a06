// The tree along which ranks are told something and say something: each has at most eight below it, so that a thousand
// are four steps away and 65,536 six. Members are numbered so that those below one follow it without a gap: what is
// gathered along the tree is in the members' order, and a join of theirs need not be commutative. A team of up to nine
// is a star.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace fabricbench {

/// A member below another, with all who are below it: `root` and those that follow it up to before `end`.
struct Branch {
  std::size_t root;
  std::size_t end;

  std::size_t size() const { return end - root; }
};

/// The place of one member in the tree of a team; member 0 is its root.
class TreePlace {
 public:
  /// How many a member has directly below it, at most.
  static constexpr std::size_t width = 8;
  /// The largest team that is a star.
  static constexpr std::size_t largest_star = width + 1;

  TreePlace(std::size_t size, std::size_t member) {
    Branch here{.root = 0, .end = size};
    while (here.root != member) {
      const std::vector<Branch> below = branches_of(here);
      parent_ = here.root;
      here = *std::ranges::find_if(below, [&](const Branch& branch) { return member < branch.end; });
    }
    branches_ = branches_of(here);
  }

  /// Who is directly above it; nobody above the root.
  std::optional<std::size_t> parent() const { return parent_; }
  const std::vector<Branch>& branches() const& { return branches_; }
  std::vector<Branch> branches() && { return std::move(branches_); }

  /// How many steps the last member is from the root.
  static std::size_t depth_of(std::size_t size) {
    std::size_t depth = 0;
    for (; size > 1; ++depth) size = (size - 1 + width - 1) / width;
    return depth;
  }

 private:
  /// As equal as can be.
  static std::vector<Branch> branches_of(const Branch& of) {
    const std::size_t below = of.size() - 1;
    const std::size_t count = std::min(width, below);
    std::vector<Branch> branches;
    std::size_t root = of.root + 1;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t end = root + below / count + (i < below % count ? 1 : 0);
      branches.push_back({.root = root, .end = end});
      root = end;
    }
    return branches;
  }

  std::optional<std::size_t> parent_;
  std::vector<Branch> branches_;
};

}  // namespace fabricbench
