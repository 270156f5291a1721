#!/bin/sh
# RUSTC_WORKSPACE_WRAPPER of the fuzz targets: our own crates get coverage counters, AddressSanitizer and all checks; what they
# depend on is the same as in the engine, and is built once. The variable lets a stable compiler take the option of the sanitizer.
RUSTC_BOOTSTRAP=1 exec "$@" \
  --cfg fuzzing -Zsanitizer=address -Cunsafe-allow-abi-mismatch=sanitizer \
  -Cdebug-assertions=on -Coverflow-checks=on -Cdebuginfo=line-tables-only \
  -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
  -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares
