"""The worker of scans with several processes at once, each with CPUs, memory and model of its
own.
"""
