# JSON for C++: a system package, else the nlohmann-json wheel of the environment that builds.
find_path(NLOHMANN_JSON_INCLUDE_DIR nlohmann/json.hpp)
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
