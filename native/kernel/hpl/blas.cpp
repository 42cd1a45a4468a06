#include "kernel/hpl/blas.hpp"

#include <dlfcn.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/failure.hpp"

namespace fabricbench::hpl {
namespace {

/// How libraries spell the names of their functions: plain, the wheel's, and both where numbers have 64 bits.
struct Spelling {
  std::string_view prefix;
  std::string_view suffix;
};
constexpr std::array spellings{Spelling{"", "_"}, Spelling{"scipy_", "_"}, Spelling{"", "_64_"},
                               Spelling{"scipy_", "_64_"}};

constexpr std::array system_libraries{"libopenblas.so.0", "libblis.so.4", "libmkl_rt.so.2", "libblas.so.3"};

void* find(void* library, std::string_view prefix, std::string_view name, std::string_view suffix) {
  return dlsym(library, std::string(prefix).append(name).append(suffix).c_str());
}

/// Where the wheel's library lies if this program was installed by pip: both are in one site-packages.
std::string wheel_library() {
  std::error_code error;
  const auto own = std::filesystem::read_symlink("/proc/self/exe", error);
  return own.parent_path().parent_path().parent_path() / "scipy_openblas32" / "lib" / "libscipy_openblas.so";
}

std::vector<std::string> candidates(const std::string& asked) {
  if (!asked.empty()) return {asked};
  const char* of_site = std::getenv(blas_variable);
  if (of_site != nullptr && *of_site != '\0') return {of_site};
  std::vector<std::string> found{wheel_library()};
  found.insert(found.end(), system_libraries.begin(), system_libraries.end());
  return found;
}

/// The variables that libraries read when they are loaded; what the environment has is replaced, for ranks that
/// start a thread for each processor would take them from each other.
void set_threads(int threads) {
  for (const char* variable :
       {"OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS", "MKL_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"}) {
    setenv(variable, std::to_string(threads).c_str(), 1);
  }
}

std::string file_of(void* function) {
  Dl_info info{};
  if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return "a library";
  std::error_code error;
  const auto whole = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::string(info.dli_fname) : whole.string();
}

std::string without_spaces_at_ends(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::string name_of(void* library, void* function, int threads) {
  std::string name;
  for (const Spelling& spelling : spellings) {
    for (const std::string_view suffix : {"", "64_"}) {
      if (auto* config = find(library, spelling.prefix, "openblas_get_config", suffix)) {
        name = without_spaces_at_ends(reinterpret_cast<const char* (*)()>(config)());
      }
    }
  }
  if (auto* version = dlsym(library, "bli_info_get_version_str")) {
    name = std::string("BLIS ") + reinterpret_cast<const char* (*)()>(version)();
  }
  if (name.empty()) name = file_of(function);
  return name + ", " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

struct Functions {
  Blas::Gemm gemm;
  Blas::Trsm trsm;
};

std::optional<Functions> functions_of(void* library) {
  for (const Spelling& spelling : spellings) {
    void* gemm = find(library, spelling.prefix, "dgemm", spelling.suffix);
    void* trsm = find(library, spelling.prefix, "dtrsm", spelling.suffix);
    if (gemm != nullptr && trsm != nullptr)
      return Functions{reinterpret_cast<Blas::Gemm>(gemm), reinterpret_cast<Blas::Trsm>(trsm)};
  }
  return std::nullopt;
}

/// A library whose functions mean something else must not be taken for a slow or a wrong network.
bool multiplies(const Blas& blas) {
  const std::array<double, 4> a{1, 2, 3, 4};
  const std::array<double, 4> b{5, 6, 7, 8};
  std::array<double, 4> c{};
  blas.subtract_product(2, 2, 2, a.data(), 2, b.data(), 2, c.data(), 2);
  std::array<double, 2> x{1, 5};
  blas.solve_unit_lower(2, 1, a.data(), 2, x.data(), 2);
  return c == std::array<double, 4>{-23, -34, -31, -46} && x == std::array<double, 2>{1, 3};
}

}  // namespace

Blas Blas::load(const std::string& asked, int threads) {
  set_threads(threads);
  std::string tried;
  for (const std::string& path : candidates(asked)) {
    tried.append(tried.empty() ? "" : "; ");
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const std::string why = dlerror();  // names the library only where it is itself what is missing
      tried.append(why.starts_with(path) ? why : path + ": " + why);
      continue;
    }
    const std::optional<Functions> functions = functions_of(library);
    if (!functions) {
      tried.append(path).append(": it has no dgemm and dtrsm");
      continue;
    }
    Blas blas(functions->gemm, functions->trsm, name_of(library, reinterpret_cast<void*>(functions->gemm), threads));
    if (multiplies(blas)) return blas;
    tried.append(path).append(": a product of two matrices comes out wrong");
  }
  throw Failure(FailureCode::unsupported, "no BLAS can be used (" + tried +
                                              "): install the wheel scipy-openblas32, or name a library by --blas or " +
                                              blas_variable);
}

}  // namespace fabricbench::hpl
