#!/bin/sh
# srun ... wrappers/slurm/rocprofv3.sh COMMAND ...   (see wrap.sh for its variables)
exec "$(dirname "$0")/wrap.sh" rocprofv3 --hip-trace -- "$@"
