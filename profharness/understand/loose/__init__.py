"""What the user names besides runs: trace files, several as ranks of one job, and CSVs of scans."""
