"""The parts of `load_generator.py`: the server, the clients that are compared, their figures."""
