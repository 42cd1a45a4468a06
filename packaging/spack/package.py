"""Spack's recipe for the programs of fabricbench that run on the nodes, built with the MPI that the site has in Spack.

Copy it to packages/fabricbench/package.py of a repository of your own (`spack repo create`), say below where the source is,
then `spack install fabricbench ^openmpi`. The Python part is installed from wheels (docs/deploying.md): Spack's own repository
lacks some packages that it needs.
"""

from __future__ import annotations

from spack.package import EnvironmentModifications, depends_on, license, requires, variant, version  # noqa: A004 - Spack's own name
from spack_repo.builtin.build_systems.cmake import CMakePackage


class Fabricbench(CMakePackage):
    """Measure, explain, compare and predict cluster interconnects: what runs on the nodes."""

    git = "file:///path/to/fabricbench"

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("kernels", default=True, description="The NAS Parallel Benchmarks as well")
    variant("march", default="none", description="Build kernels for this processor alone, as -march names it")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.24:", type="build")
    depends_on("python@3.11:", type=("build", "run"))
    depends_on("nlohmann-json@3.11:")
    depends_on("mpi@3.1:")

    requires("%gcc@12:", "%clang@15:", "%oneapi@2023:", policy="any_of", msg="C++20 as these compile it")

    def cmake_args(self) -> list[str]:
        """Return what CMake is told: which MPI, and what to leave out."""
        march = self.spec.variants["march"].value
        return [
            self.define("MPI_CXX_COMPILER", self.spec["mpi"].mpicxx),
            self.define_from_variant("FABRICBENCH_KERNELS", "kernels"),
            self.define("FABRICBENCH_MARCH", "" if march == "none" else march),
        ]

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        """Have the Python part find these programs in place of its own."""
        env.set("FABRICBENCH_BIN", self.prefix.fabricbench.bin)
