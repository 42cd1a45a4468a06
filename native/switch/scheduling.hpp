// What the switch asks of the scheduler and of the memory manager. Whatever an ordinary user may not have is done
// without.
#pragma once

#include <optional>

namespace fabricbench::emulated_switch {

/// Keeps the process's memory resident, so that no page fault delays a frame.
void lock_memory();

/// Puts the calling thread on its CPU, before other threads where that is permitted. EnvironmentLacks where there is no
/// such CPU.
void claim_cpu(std::optional<int> cpu);

/// Takes the calling thread off that CPU, unless it is the only one.
void leave_cpu(std::optional<int> cpu);

}  // namespace fabricbench::emulated_switch
