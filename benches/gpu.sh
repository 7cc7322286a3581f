#!/bin/sh
# All that needs a GPU, from programs that are built already: benches/gpu.sh PROGRAMS FOLDER [DATA]. `cargo xtask gpu`
# builds and calls it; it also runs where there is no Rust.
#
# PROGRAMS holds `gpu` of steinflow-bench, and what else is to be run: `device`, the tests of steinflow-cuda, and the
# command `steinflow`. DATA holds UCI data sets. Raw numbers go to FOLDER.
set -eu
programs=$1 folder=$2 data=${3-}
here=$(dirname "$0")
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

clocks() {
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm,clocks.mem,power.limit --format=csv
}
clocks > "$folder/machine.txt"

if [ -x "$programs/device" ]; then
    "$programs/device" --nocapture --test-threads 4
fi

if [ -x "$programs/steinflow" ]; then
    command=$programs/steinflow
    "$command" devices
    # Killed and taken up again, a run has the bits it would have had.
    network="sample bnn --device cuda --steps 200000 --seed 5 --quiet --checkpoint-every 5000"
    "$command" $network --out "$work/whole" > "$folder/bnn.txt"
    "$command" $network --out "$work/killed" > "$work/log" 2>&1 &
    killed=$!
    sleep 6
    kill -9 $killed
    wait $killed || true
    "$command" resume "$work/killed" --quiet > "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    cmp "$work/whole/particles.parquet" "$work/killed/particles.parquet"
    echo "killed and resumed: the same particles"
    if [ -n "$data" ]; then
        # A tenth of the network experiment, on both.
        for device in cuda cpu; do
            { echo "device = '$device'"; sed 's/^steps = 40000/steps = 4000/' "$here/../experiments/uci/best.toml"; } \
                > "$work/$device.toml"
            "$command" reproduce uci --datasets boston,yacht --splits 0-4 --settings "$work/$device.toml" \
                --data-dir "$data" --out "$work/uci-$device" > "$work/log" 2>&1 || cat "$work/log"
            cp "$work/uci-$device/runs.csv" "$folder/uci-$device.csv"
        done
    fi
fi

"$programs/gpu" > "$folder/steinflow.jsonl"
clocks | tail -n 1 >> "$folder/machine.txt"
if python3 -c 'import jax' 2> /dev/null; then
    python3 "$here/peers/gpu_jax.py" > "$folder/jax.jsonl"
else
    echo "JAX is not installed: there is no peer to compare with"
fi
cat "$folder"/machine.txt "$folder"/*.jsonl
