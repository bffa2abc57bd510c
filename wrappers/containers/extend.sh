#!/bin/sh
# Packages of one's own beside those of an image, as one file: thousands of small ones are slow on a parallel file system.
#
#   wrappers/containers/extend.sh IMAGE.sif env.sqsh PACKAGE ...     (where Apptainer and mksquashfs are)
#   profharness run --container IMAGE.sif --container-bind env.sqsh:/user-software:image-src=/ --container-init auto -- ...
#
# APPTAINER  the program (default: apptainer, else singularity)    BINDS  further folders, such as /pfs,/scratch
# PIP        options of pip, such as --no-index --find-links FOLDER
set -eu

[ $# -ge 2 ] || { echo "extend.sh: IMAGE.sif env.sqsh PACKAGE ..." >&2; exit 2; }
image=$1 packed=$2
shift 2
program=${APPTAINER:-$(command -v apptainer || command -v singularity)}
work=$(mktemp -d "${TMPDIR:-/tmp}/extend-XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/env"
# it is made where it will be seen, since its programs name that place
inside() { "$program" exec ${BINDS:+--bind "$BINDS"} --bind "$work/env:/user-software" "$image" "$@"; }
inside python3 -m venv --system-site-packages --symlinks /user-software
# shellcheck disable=SC2086  # several options
[ $# -eq 0 ] || inside /user-software/bin/python -m pip install --quiet ${PIP:-} "$@"
mksquashfs "$work/env" "$packed" -processors 1 -no-xattrs -noappend -quiet -no-progress
