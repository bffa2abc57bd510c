#!/bin/sh
# Between srun (or mpirun) and a command: profile chosen ranks with one layer, start the others as they are.
#
#   srun -n 8 wrappers/slurm/wrap.sh rocprofv3 --hip-trace -- python train.py
#
# PROFHARNESS_WRAP_RANKS   ranks to profile, "all" (default) or a list such as "0" or "0,4"
# PROFHARNESS_WRAP_OUTPUT  folder for the files (default traces/wrap-<job id>)
# PROFHARNESS              what starts the harness, in words without blanks of their own (default: the line below)
#
# It needs a POSIX shell alone: the Python of the node may be any, or none.
set -eu

: "${PROFHARNESS:=profharness}"
rank=${SLURM_PROCID:-${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${RANK:-0}}}}
ranks=${PROFHARNESS_WRAP_RANKS:-all}
output=${PROFHARNESS_WRAP_OUTPUT:-traces/wrap-${SLURM_JOB_ID:-local}}

case ",$ranks," in
    ,all, | *",$rank,"*)
        layer=$1
        shift
        exec $PROFHARNESS wrap "$layer" -o "$output" "$@"
        ;;
esac
while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done
[ $# -gt 1 ] || { echo "wrap.sh: no command after --" >&2; exit 2; }
shift
exec "$@"
