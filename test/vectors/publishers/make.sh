#!/usr/bin/env bash
# make.sh ENVIRONMENTS OUT [SEED]: every family's small checkpoint with its golden values in OUT/<family>/{checkpoint,golden}.
# ENVIRONMENTS is the folder that bench/import/publishers.sh made. Seed 0, the default, makes the vectors of the repository.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
environments=${1:?usage: make.sh ENVIRONMENTS OUT [SEED]}
out=${2:?usage: make.sh ENVIRONMENTS OUT [SEED]}
seed=${3:-0}
# One thread and no hub: sums in one order, and nothing that a network could change.
export HF_HUB_OFFLINE=1 JAX_PLATFORMS=cpu OMP_NUM_THREADS=1 TRANSFORMERS_VERBOSITY=error PYTHONDONTWRITEBYTECODE=1
make() {
  local environment=$1 script=$2 folder=$3
  shift 3
  rm -rf "${out:?}/$folder"
  "$environments/$environment/bin/python" "$here/$script" "$out/$folder" --seed "$seed" "$@"
}
if [ "$seed" = 0 ]; then
  make lerobot pi05.py pi05-lerobot --bf16
else
  make lerobot pi05.py pi05-lerobot
fi
make openpi openpi_pi05.py pi05-openpi
make lerobot act.py act
make lerobot act.py act-other --other
make lerobot smolvla.py smolvla
