#!/bin/sh
# srun ... wrappers/slurm/amd_log.sh COMMAND ...   (see wrap.sh for its variables)
exec "$(dirname "$0")/wrap.sh" amd-log -- "$@"
