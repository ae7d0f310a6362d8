"""The experiments of the lab as cells of a sweep; cheap to import, one a file."""
