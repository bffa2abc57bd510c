#!/bin/sh
# srun ... wrappers/slurm/py_spy.sh COMMAND ...   (see wrap.sh for its variables)
exec "$(dirname "$0")/wrap.sh" py-spy -- "$@"
