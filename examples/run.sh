#!/bin/sh
# Sets mcugen up in this folder and runs its main job on the shipped example: model.txt to verified C, then the C.
# SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")/.."
. examples/setup.sh
set_up run ''
sh examples/quickstart/job.sh
