"""What several workers use: the protocol with the harness, timing, inputs, models, marks."""
