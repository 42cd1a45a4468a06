"""What is to be run, the plan of it, and running it so that nothing measured is lost."""
