// What a run comes to: whether it is verified, its rates, and the exit code that scripts rely on.
#pragma once

#include "kernel/npb/npb.hpp"

namespace fabricbench::npb {

enum class Exit { verified = 0, wrong = 1, usage = 2, environment = 3 };

/// Every check holds, and there is at least one: a run that checked nothing has proved nothing.
bool is_verified(const Result& result);

/// The exit code after one more run. A wrong result is not made good by right ones that follow.
Exit after(Exit so_far, const Result& result);

double mops_total(const Result& result);

}  // namespace fabricbench::npb
