"""The ``unseen`` command: a thin layer of files, ids and printing around the library."""
