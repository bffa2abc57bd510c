"""The outputs of rocprof, AMD's first tracer, and of rocminfo beside it."""
