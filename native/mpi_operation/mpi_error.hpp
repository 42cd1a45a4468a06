// Turns MPI's error codes into Failures. The communicators and windows of this folder return errors instead of
// aborting.
#pragma once

#include <mpi.h>

#include <array>
#include <string>

#include "base/failure.hpp"

namespace fabricbench {

inline void check_mpi(int error, const char* call) {
  if (error == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(error, text.data(), &length);
  throw Failure(FailureCode::error, std::string(call) + " failed: " + text.data());
}

}  // namespace fabricbench
