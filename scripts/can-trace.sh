#!/bin/sh
# Prints 1 where tests of the tracer have to run: as root on a kernel that describes its types. Else 0: they say that
# they are skipped, and why.
if [ "$(id -u)" -eq 0 ] && [ -r /sys/kernel/btf/vmlinux ]; then
    echo 1
else
    echo 0
fi
