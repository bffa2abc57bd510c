"""Tables of load on a server: what sharing costs, and how full ragged batches were."""
