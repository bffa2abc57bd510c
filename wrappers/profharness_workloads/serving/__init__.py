"""The worker that serves models in Triton, and a runner per backend that it serves."""
