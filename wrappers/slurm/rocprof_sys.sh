#!/bin/sh
# srun ... wrappers/slurm/rocprof_sys.sh COMMAND ...   (see wrap.sh for its variables)
exec "$(dirname "$0")/wrap.sh" rocprof-sys -- "$@"
