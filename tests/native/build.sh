#!/bin/sh
# Which programs are native frames compared on? Builds them into a folder: build.sh FOLDER
# shapes, libshapes.so: C++ with templates, lambdas and functions inlined across files; words: Rust.
set -eu
out=$1
cd "$(dirname "$0")"
mkdir -p "$out"
g++ -std=c++20 -O2 -g -fPIC -shared -Wl,--build-id -o "$out/libshapes.so" shapes.cpp sums.cpp
g++ -std=c++20 -O2 -g -Wl,--build-id -o "$out/shapes" main.cpp sums.cpp -L"$out" -lshapes -Wl,-rpath,"$out"
clang++-16 -std=c++20 -O2 -gdwarf-4 -Wl,--build-id -o "$out/shapes-4" main.cpp shapes.cpp sums.cpp
rustc --edition 2024 -O -g -o "$out/words" words.rs
