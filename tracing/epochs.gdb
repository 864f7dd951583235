# A line for each epoch that becomes durable, by gdb: for machines without bpftrace. Each line holds the checkpoint thread for a moment.
# Usage: gdb -q -batch -p PID -x tracing/epochs.gdb       (Ctrl-C ends)
set pagination off
set print thread-events off
set breakpoint pending on
break -probe-stap stillpoint:durable
commands
silent
printf "epoch %lu durable, written in %.3f ms\n", $_probe_arg0, (double)$_probe_arg1 / 1000000
continue
end
continue
