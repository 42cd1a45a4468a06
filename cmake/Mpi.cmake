# Which MPI the measurer is built with: $MPICC, else mpicc on PATH, else the mpich wheel of the environment that builds.
# An MPICH on PATH that was built without libfabric is passed over: Debian 12's (4.0.2 over UCX 1.13) did not end its ranks in
# MPI_Finalize in 5 of 8 starts of 4 ranks over TCP (docs/starting.md). Named in MPICC it is taken.
# A wheel's compiler wrapper knows its own place, so nothing needs to be told where the libraries are.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
# `fabricbench build` names the C++ compiler and the starter themselves: MPI_CXX_COMPILER, MPIEXEC_EXECUTABLE.
if(MPI_CXX_COMPILER)
  set(MPICC_CANDIDATE "${MPI_CXX_COMPILER}")
else()
  set(MPICC_CANDIDATE "$ENV{MPICC}")
endif()
if(NOT MPICC_CANDIDATE)
  get_filename_component(_python_bin "${Python3_EXECUTABLE}" DIRECTORY)
  find_program(_mpicc_found NAMES mpicc PATHS ${_python_bin})
  set(MPICC_CANDIDATE "${_mpicc_found}")
  find_program(_mpicc_of_wheel NAMES mpicc PATHS ${_python_bin} NO_DEFAULT_PATH)
  if(_mpicc_found AND _mpicc_of_wheel AND NOT _mpicc_found STREQUAL _mpicc_of_wheel)
    get_filename_component(_found_bin "${_mpicc_found}" DIRECTORY)
    find_program(_mpichversion NAMES mpichversion PATHS ${_found_bin} NO_DEFAULT_PATH NO_CACHE)
    execute_process(COMMAND "${_mpicc_found}" -v OUTPUT_VARIABLE _whose ERROR_QUIET)
    set(_device "")
    if(_mpichversion AND _whose MATCHES "MPICH version")
      execute_process(COMMAND "${_mpichversion}" OUTPUT_VARIABLE _device ERROR_QUIET)
    endif()
    if(_device MATCHES "MPICH Device:[ \t]*ch4:ucx[ \t]*\n")
      message(STATUS "MPI: passed over ${_mpicc_found}, an MPICH without libfabric (ch4:ucx); MPICC=${_mpicc_found} takes it")
      set(MPICC_CANDIDATE "${_mpicc_of_wheel}")
    endif()
  endif()
endif()
if(NOT MPICC_CANDIDATE)
  message(FATAL_ERROR "no MPI: set MPICC, put mpicc on PATH, or install the 'mpich' wheel into ${Python3_EXECUTABLE}'s environment")
endif()
# By name or by path, for systems have several beside each other: mpicc.mpich goes with mpicxx.mpich and mpiexec.mpich.
find_program(_mpicc NAMES "${MPICC_CANDIDATE}" NO_CACHE)
if(NOT _mpicc)
  message(FATAL_ERROR "no MPI: found MPICC=${MPICC_CANDIDATE}, needed a program by its path or on PATH")
endif()
get_filename_component(_mpi_bin "${_mpicc}" DIRECTORY)
get_filename_component(_mpicc_name "${_mpicc}" NAME)
string(REGEX REPLACE "^mpi(cc|cxx|c[+][+])" "" _mpi_suffix "${_mpicc_name}")
if(_mpi_suffix STREQUAL _mpicc_name)  # mpiicx say
  set(_mpi_suffix "")
endif()
find_program(MPI_CXX_COMPILER NAMES mpicxx${_mpi_suffix} mpic++${_mpi_suffix} HINTS ${_mpi_bin} NO_DEFAULT_PATH)
find_program(MPIEXEC_EXECUTABLE NAMES mpiexec${_mpi_suffix} HINTS ${_mpi_bin} NO_DEFAULT_PATH)
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI REQUIRED COMPONENTS CXX)
message(STATUS "MPI: ${MPI_CXX_COMPILER}, started by ${MPIEXEC_EXECUTABLE}")

# `pip install` builds in an environment of its own, which is gone afterwards: an MPI from a wheel is found again where the
# package is installed, by the Python side and by $ORIGIN (cmake/Warnings.cmake), and never by the path that it had here.
# `fabricbench build` builds with one that stays where it is.
option(FABRICBENCH_MPI_STAYS "The MPI stays where it is, also where a wheel brought it" OFF)
file(GLOB _mpi_wheels "${_mpi_bin}/../lib/python*/site-packages/mpich-*.dist-info")
if(_mpi_wheels AND NOT FABRICBENCH_MPI_STAYS)
  set(MPI_IS_WHEEL "true")
  set(CMAKE_INSTALL_RPATH_USE_LINK_PATH OFF)
  get_target_property(_mpi_options MPI::MPI_CXX INTERFACE_LINK_OPTIONS)
  if(_mpi_options)
    list(FILTER _mpi_options EXCLUDE REGEX "rpath")
    set_target_properties(MPI::MPI_CXX PROPERTIES INTERFACE_LINK_OPTIONS "${_mpi_options}")
  endif()
else()
  set(MPI_IS_WHEEL "false")
endif()

# The Python side reads this to start programs with the MPI that they were built with.
file(WRITE ${CMAKE_BINARY_DIR}/build_info.json
     "{\"mpicxx\": \"${MPI_CXX_COMPILER}\", \"mpiexec\": \"${MPIEXEC_EXECUTABLE}\", \"compiler\": \"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\", \"build_type\": \"${CMAKE_BUILD_TYPE}\", \"mpi_is_wheel\": ${MPI_IS_WHEEL}}\n")
install(FILES ${CMAKE_BINARY_DIR}/build_info.json DESTINATION fabricbench/bin COMPONENT mpi)

# What is built once for each MPI: target `fabricbench_mpi`, component `mpi`.
add_custom_target(fabricbench_mpi)
function(install_for_mpi program)
  install(TARGETS ${program} RUNTIME DESTINATION fabricbench/bin COMPONENT mpi)
  add_dependencies(fabricbench_mpi ${program})
endfunction()
