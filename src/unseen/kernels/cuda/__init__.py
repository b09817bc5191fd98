"""CUDA C++ sources, and the provider that compiles and runs them."""
