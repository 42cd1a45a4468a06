// What people read on rank 0: how fast, right or wrong, and where the time went.
#pragma once

#include <cstdio>

#include "kernel/frame/profile.hpp"
#include "kernel/npb/npb.hpp"

namespace fabricbench::npb {

void print_result(std::FILE* out, const Kernel& kernel, Class problem, const Result& result, const Profile& profile);

}  // namespace fabricbench::npb
