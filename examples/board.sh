#!/bin/sh
# Builds an example of a signal chain for the board: sh examples/board.sh motion
# Exports it as a CMake project, puts its main.c and headers into the project's app/, builds it. Needs mcugen, cmake, ninja
# and arm-none-eabi-gcc on the PATH.
# SPDX-License-Identifier: MIT
set -eu
name=${1:?which example? motion, thermo_life or ecg}
cd "$(dirname "$0")/.."
from=examples/$name out=build/${name}_board
case $name in
    ecg) data=ecg.npy ;;
    *) data=samples.npy ;;
esac

mcugen export "$from/$name.toml" --calib "$from/$data" -o "$out" --project cmake
cp "$from"/*.[ch] "$out/app/"
cd "$out"
cmake --preset Release
cmake --build --preset Release
