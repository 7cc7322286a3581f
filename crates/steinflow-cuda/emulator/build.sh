#!/bin/sh
# Builds the emulated GPU: crates/steinflow-cuda/emulator/build.sh FOLDER. Whatever then runs with that folder in
# LD_LIBRARY_PATH finds a GPU there, also the command.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/kept"
folder=$(cd "$1" && pwd)
c++ -std=c++20 -O2 -fPIC -shared -DSOURCES="\"$here\"" -DKEPT="\"$folder/kept\"" "$here/device.cpp" -o "$folder/libcuda.so" -ldl
ln -sf libcuda.so "$folder/libnvrtc.so"
