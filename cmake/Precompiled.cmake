# The standard headers take a compiler that does not optimise half of its time: for the sanitized tests Clang compiles them once, for all
# targets with MPI (its options may be others than of the few without). GCC does not: it then inlines otherwise, and its version 12
# warns of what is not there.
function(precompile_headers)
  set(directories ${PROJECT_SOURCE_DIR}/native)
  while(directories)
    list(POP_FRONT directories directory)
    get_property(below DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
    list(APPEND directories ${below})
    if(directory MATCHES "/(base|linkdelay|programs|socket_calls|switch)$")
      continue()
    endif()
    get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target ${targets})
      get_target_property(type ${target} TYPE)
      get_target_property(options ${target} COMPILE_OPTIONS)
      if(type MATCHES "^(STATIC_LIBRARY|EXECUTABLE)$" AND NOT options MATCHES "-O[12]|-march|-f" AND NOT target STREQUAL fabricbench_core)
        target_precompile_headers(${target} REUSE_FROM fabricbench_core)
      endif()
    endforeach()
  endwhile()
  target_precompile_headers(fabricbench_core PRIVATE
    <algorithm> <array> <charconv> <chrono> <cmath> <cstdint> <cstring> <filesystem> <fstream> <functional> <map> <memory>
    <numeric> <optional> <random> <set> <span> <stdexcept> <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>)
endfunction()
