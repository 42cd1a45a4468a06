"""How each program that starts ranks is told of them: a file each, listed in `launch/mpi.py`."""
