"""The samples of a sampler as time series: of a file that still grows, and of one that is kept."""
