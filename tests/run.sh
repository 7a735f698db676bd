#!/bin/sh
# Sets up all that the tests need and runs them: sh tests/run.sh [arguments of pytest]
# SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")/.."
. examples/setup.sh
set_up test '[test]' g++ clang cmake ninja-build gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm
exec python -m pytest -n 2 "$@"
