#!/bin/sh
# srun ... wrappers/slurm/rocprof.sh COMMAND ...   (see wrap.sh for its variables)
exec "$(dirname "$0")/wrap.sh" rocprof --hip-trace -- "$@"
