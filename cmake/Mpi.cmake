# Which MPI the measurer is built with: $MPICC, else mpicc on PATH, else the mpich wheel of the environment that builds.
# A wheel's compiler wrapper knows its own place, so nothing needs to be told where the libraries are.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(MPICC_CANDIDATE "$ENV{MPICC}")
if(NOT MPICC_CANDIDATE)
  get_filename_component(_python_bin "${Python3_EXECUTABLE}" DIRECTORY)
  find_program(_mpicc_found NAMES mpicc PATHS ${_python_bin})
  set(MPICC_CANDIDATE "${_mpicc_found}")
endif()
if(NOT MPICC_CANDIDATE)
  message(FATAL_ERROR "no MPI: set MPICC, put mpicc on PATH, or install the 'mpich' wheel into ${Python3_EXECUTABLE}'s environment")
endif()
get_filename_component(_mpi_bin "${MPICC_CANDIDATE}" DIRECTORY)
set(MPI_C_COMPILER "${MPICC_CANDIDATE}")
find_program(MPI_CXX_COMPILER NAMES mpicxx mpic++ HINTS ${_mpi_bin} NO_DEFAULT_PATH)
find_program(MPIEXEC_EXECUTABLE NAMES mpiexec HINTS ${_mpi_bin} NO_DEFAULT_PATH)
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI REQUIRED COMPONENTS CXX)
message(STATUS "MPI: ${MPI_CXX_COMPILER}, started by ${MPIEXEC_EXECUTABLE}")

# The Python side reads this to start programs with the MPI that they were built with.
file(WRITE ${CMAKE_BINARY_DIR}/build_info.json
     "{\"mpicxx\": \"${MPI_CXX_COMPILER}\", \"mpiexec\": \"${MPIEXEC_EXECUTABLE}\", \"compiler\": \"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\", \"build_type\": \"${CMAKE_BUILD_TYPE}\"}\n")
install(FILES ${CMAKE_BINARY_DIR}/build_info.json DESTINATION fabricbench/bin)
