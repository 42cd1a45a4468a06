"""Starting the measurer over the nodes: a file for each launcher, and how each MPI is told to use a fabric."""
