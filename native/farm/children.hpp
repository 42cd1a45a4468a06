// The children of this process: whoever adopts what others leave ends all of them at once.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fabricbench::farm {

/// How long a process may take to be gone after SIGKILL. One that is stuck in the kernel, in a call to a dead file
/// server say, stays until that lets it go, and the farm does not wait for it.
constexpr std::uint64_t kill_limit_ns = 5'000'000'000;

/// Kill every child, and what these leave, until there is none but those that are `spared`; the children that stay all
/// the same. No process that is no child of this one is ever meant: a child's number is its own until it is waited for.
std::vector<pid_t> kill_children(const std::map<pid_t, std::uint64_t>& spared = {});

/// Why processes that stay after SIGKILL are told of: empty where there are none.
std::string text_of_stuck(const std::vector<pid_t>& stuck);

}  // namespace fabricbench::farm
