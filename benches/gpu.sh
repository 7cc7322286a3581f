#!/bin/sh
# Times on a GPU, with JAX beside them: benches/gpu.sh BENCH FOLDER, with BENCH the built program `gpu`.
# `cargo xtask gpu` builds and calls it; this part alone also runs where there is no Rust.
set -eu
bench=$1 folder=$2
here=$(dirname "$0")
mkdir -p "$folder"
clocks() {
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm,clocks.mem,power.limit --format=csv
}
clocks > "$folder/machine.txt"
"$bench" > "$folder/steinflow.jsonl"
clocks | tail -n 1 >> "$folder/machine.txt"
if python3 -c 'import jax' 2> /dev/null; then
    python3 "$here/peers/gpu_jax.py" > "$folder/jax.jsonl"
else
    echo "JAX is not installed: there is no peer to compare with"
fi
cat "$folder"/machine.txt "$folder"/*.jsonl
