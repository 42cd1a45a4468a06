#include "kernel/frame/level.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

namespace fabricbench::kernel {
namespace {

struct Level {
  std::string_view name;
  bool (*is_supported)();
};

#ifdef __x86_64__
constexpr std::array levels{
    Level{"x86-64-v4", [] { return __builtin_cpu_supports("x86-64-v4") != 0; }},
    Level{"x86-64-v3", [] { return __builtin_cpu_supports("x86-64-v3") != 0; }},
    Level{"x86-64", [] { return true; }},
};
#else
constexpr std::array<Level, 0> levels{};
#endif

/// Whether this program is the one that people start, of a family with several levels.
bool is_baseline() { return !has_one_level && !levels.empty() && compiled_level == levels.back().name; }

const Level* find_level(std::string_view name) {
  const auto found = std::ranges::find(levels, name, &Level::name);
  return found == levels.end() ? nullptr : &*found;
}

std::string names_of(std::span<const Level> some) {
  std::string names;
  for (const Level& level : some) names.append(names.empty() ? "" : ", ").append(level.name);
  return names;
}

/// Where the program of a level lies: beside this one. Empty where the kernel does not tell where that is.
std::string path_of(const Level& level) {
  std::array<char, PATH_MAX> own{};
  const ssize_t length = readlink("/proc/self/exe", own.data(), own.size());
  if (length <= 0 || static_cast<std::size_t>(length) == own.size()) return {};
  return std::string(own.data(), static_cast<std::size_t>(length)) + "-" + std::string(level.name);
}

std::string asked(std::string_view value) { return std::string(level_variable) + " is " + std::string(value); }

/// Comes back where it cannot, with errno.
void go_on_as(const Level& level, char** argv) { execv(path_of(level).c_str(), argv); }

std::optional<std::string> follow(std::string_view value, char** argv) {
  if (value == compiled_level) return std::nullopt;
  if (!is_baseline()) return asked(value) + ", but this program is compiled for " + std::string(compiled_level);
  const Level* level = find_level(value);
  if (level == nullptr)
    return std::string(level_variable) + " needs one of " + names_of(levels) + ", found \"" + std::string(value) + "\"";
  if (!level->is_supported()) {
    const Level* best = std::ranges::find_if(levels, [](const Level& one) { return one.is_supported(); });
    return asked(value) + ", which this processor lacks: it runs " + names_of({best, levels.end()});
  }
  go_on_as(*level, argv);
  return asked(value) + ", but " + path_of(*level) + " cannot be started: " + std::strerror(errno);
}

}  // namespace

std::optional<std::string> take_level(char** argv) {
  if (const Level* own = find_level(compiled_level); own != nullptr && !own->is_supported()) {
    return "this program is compiled for " + std::string(compiled_level) + ", which this processor lacks";
  }
  if (has_one_level) return std::nullopt;
  const char* value = std::getenv(level_variable);
  if (value != nullptr && *value != '\0') return follow(value, argv);
  if (!is_baseline()) return std::nullopt;
  for (const Level& level : levels) {
    if (level.name == compiled_level) break;
    if (level.is_supported()) go_on_as(level, argv);  // where it is not installed, the next does
  }
  return std::nullopt;
}

std::string level_words() {
  if (!is_baseline()) return {};
  return "Runs in the build for the best level that the processor has. The environment variable\n" +
         std::string(level_variable) + " holds all nodes to one of " + names_of(levels) + ".\n";
}

}  // namespace fabricbench::kernel
