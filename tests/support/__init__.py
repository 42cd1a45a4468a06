"""What several rooms of the tests build on."""
