#!/bin/sh
# Prints 1 if tracer tests must run, thus as root on a kernel that describes its types. Otherwise prints 0: the tests are skipped
# and print the reason.
if [ "$(id -u)" -eq 0 ] && [ -r /sys/kernel/btf/vmlinux ]; then
    echo 1
else
    echo 0
fi
