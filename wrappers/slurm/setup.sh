#!/bin/sh
# Make the environment of the harness on a cluster whose own python3 may be 3.6:
#
#   sh setup.sh PLACE PACKAGE ...      PLACE: a folder that all nodes see; PACKAGE: the wheel, a checkout, or profharness
#
# It takes $PYTHON, else the newest Python from 3.11 on that is on the PATH, else the one of a module: cray-python, or
# those named in $MODULES.
set -eu

[ $# -ge 2 ] || { echo "usage: sh setup.sh PLACE PACKAGE ..." >&2; exit 2; }
place=$1
shift

fits() { "$1" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
newest() {
    for name in ${PYTHON:-} python3.14 python3.13 python3.12 python3.11 python3; do
        if fits "$name"; then command -v "$name"; return; fi
    done
    return 1
}

python=$(newest) || {
    for name in ${MODULES:-cray-python}; do module load "$name" || true; done 2>/dev/null
    python=$(newest)
} || {
    echo "setup.sh: no Python 3.11 or newer here ($(python3 --version 2>&1)): load a module that has one, set PYTHON," \
        "or keep the harness in the container (container.sbatch)" >&2
    exit 3
}
"$python" -m venv "$place"
"$place/bin/python" -m pip install --quiet "$@"
echo "$place/bin/profharness"
