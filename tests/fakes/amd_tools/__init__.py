"""Stand-ins for AMD's command-line tools, one file each: which options each release takes, and what it leaves."""
