# JSON for C++: beside installed sources (cmake/Sources.cmake), a system package, else the nlohmann-json wheel of the environment that builds.
find_path(NLOHMANN_JSON_INCLUDE_DIR nlohmann/json.hpp HINTS ${PROJECT_SOURCE_DIR}/include)
if(NOT NLOHMANN_JSON_INCLUDE_DIR)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -c "import nlohmann_json, pathlib; print(pathlib.Path(nlohmann_json.__path__[0]) / 'include')"
    OUTPUT_VARIABLE NLOHMANN_JSON_INCLUDE_DIR OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _failed)
  if(_failed)
    message(FATAL_ERROR "no nlohmann/json.hpp: install nlohmann-json3-dev, or the 'nlohmann-json' wheel")
  endif()
endif()
add_library(fabricbench_json INTERFACE)
target_include_directories(fabricbench_json SYSTEM INTERFACE ${NLOHMANN_JSON_INCLUDE_DIR})

# The header takes the compiler 1.3 s, what is used of it up to 4 s, in every file: files that nothing is timed in are compiled together.
# Not those of doors (probe/door.cpp.in) and pattern/, though it would save as much again: the compiler then inlines less of what is timed.
# Two files of a group cannot define one name each for itself; one that must leaves its group.
function(compile_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${target})
endfunction()
