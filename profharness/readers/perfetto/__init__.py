"""Perfetto protobuf traces, of AMD's tools and of our own writer."""
