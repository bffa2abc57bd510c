"""Worker and server processes of a scan: their protocol, and the harness's side of their lives."""
