#!/bin/bash
# What does a machine need to build the module itself? Gathers it: sources, headers, DKMS's file.
# usage: sources.sh OUT      OUT becomes what DKMS wants as /usr/src/varid-VERSION
set -euo pipefail

[ $# -eq 1 ] || { sed -n '3s/^# *//p' "$0" >&2; exit 2; }
out=$1
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$out/include"
mkdir -p "$out/include/rules"
# With their times, so that what is built of them stays.
cp -p "$here"/{*.c,*.h,Kbuild,Makefile,dkms.conf,README.md} "$out/"
cp -p "$here"/../include/{varid_module.h,varid_record.h,walk.h,walker.h,signal_frame.h} "$here"/../../dvm-patch/include/varid_tunnel.h "$out/include/"
cp -p "$here"/../include/rules/*.h "$out/include/rules/"
