// Ends a process that hangs in a call that nothing else ends: MPI's own calls wait for ever for a rank that has
// stopped. A timer's signal, so that it costs nothing while all goes well.
#pragma once

#include <time.h>

#include <optional>
#include <string>

namespace fabricbench {

/// Unless it is destroyed within `seconds`, says `message` on stderr and ends the process with `exit_code`; the starter
/// then ends the other ranks. They have a second to say the same: who says nothing is the one that hangs. One at a
/// time.
class HangAlarm {
 public:
  HangAlarm(std::optional<double> seconds, const std::string& message, int exit_code);
  ~HangAlarm();
  HangAlarm(const HangAlarm&) = delete;
  HangAlarm& operator=(const HangAlarm&) = delete;

 private:
  std::optional<timer_t> timer_;
};

}  // namespace fabricbench
