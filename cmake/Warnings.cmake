# How every native target is compiled: C++20, all warnings, warnings are errors.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

set(FABRICBENCH_SANITIZE "" CACHE STRING "Sanitizers to build with, as -fsanitize= names them: address,undefined, or thread")

find_package(Threads REQUIRED)

add_library(fabricbench_options INTERFACE)
target_compile_options(fabricbench_options INTERFACE -Wall -Wextra -Wconversion -Wshadow -Werror
  "$<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion;-Wno-deprecated-declarations>")  # as GCC; the standard library's own
target_include_directories(fabricbench_options INTERFACE ${PROJECT_SOURCE_DIR}/native)
target_link_libraries(fabricbench_options INTERFACE Threads::Threads)
if(FABRICBENCH_SANITIZE)
  # What is found ends the program: nobody reads a report among all that a test that passes has printed.
  target_compile_options(fabricbench_options INTERFACE
    -fsanitize=${FABRICBENCH_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(fabricbench_options INTERFACE -fsanitize=${FABRICBENCH_SANITIZE})
endif()

# Installed programs land in <site-packages>/fabricbench/bin; an MPI wheel's libraries in <prefix>/lib, four levels up.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../../../..")
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
