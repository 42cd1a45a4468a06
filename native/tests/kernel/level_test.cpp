#include "kernel/frame/level.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace fabricbench::kernel {

constinit const std::string_view compiled_level = "native";  // a program of one level: it never becomes another
constinit const bool has_one_level = false;

namespace {

TEST(Level, IsTheOnlyOneOfAProgramThatHasNoOther) {
  unsetenv(level_variable);
  EXPECT_FALSE(take_level(nullptr));
  setenv(level_variable, "native", 1);
  EXPECT_FALSE(take_level(nullptr));
  unsetenv(level_variable);
  EXPECT_EQ(level_words(), "");
}

TEST(Level, ThatAProgramIsNotCompiledForIsRefused) {
  setenv(level_variable, "x86-64-v3", 1);
  EXPECT_EQ(take_level(nullptr), "FABRICBENCH_PROCESSOR_LEVEL is x86-64-v3, but this program is compiled for native");
  unsetenv(level_variable);
}

}  // namespace
}  // namespace fabricbench::kernel
