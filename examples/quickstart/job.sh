#!/bin/sh
# The example's job: export, build main.c with the exported folder, run it. Needs mcugen and a C compiler on the PATH.
# SPDX-License-Identifier: MIT
set -eu
cd "$(dirname "$0")/../.."
from=examples/quickstart out=build/furnace

mcugen export "$from/furnace.txt" --spec "$from/spec.toml" --calib "$from/counts.csv" -o "$out"
"${CC:-cc}" -std=c11 -O2 -Wall -Wextra -o build/example -I "$out" \
    "$from/main.c" "$out"/furnace.c "$out"/furnace_selftest.c "$out"/mcugen/*.c
build/example
