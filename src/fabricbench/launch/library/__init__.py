"""What each MPI library must be told to talk over a fabric: a file each, listed in `launch/mpi.py`."""
