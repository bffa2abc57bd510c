"""Programs that run under the workload's Python, started by their paths.

They need Python 3.8 or newer and the libraries of their subject.

How a program finds its siblings. Python puts the folder of a program first on sys.path, where a
file of ours could hide a library of the same name; under `python -I` it puts nothing there. So each
program begins with the same lines: they take its own folder off sys.path and put the folder above
this package first. From then on each module is imported by its full name, as in `from
profharness_workloads.loadgen.http2 import Http2`, by programs and modules alike. Nothing else than
the wrappers folder is needed, wherever it lies. That folder stands on the path of a profiled
command too, at its end; therefore this package has a name that no other package has.
"""
