#!/bin/busybox sh
# The first process of the guest (tests/guest/power_cuts.py): finds the durable device, mounts it, and sets the
# program to work on it. Every line on the serial console that begins with "guest:" is read by the host.
# The kernel's command line brings: guest_kind (nvdimm, disk), guest_first (1: make the file system),
# guest_options (more options of mount), guest_program (the words that soak_program gets, with commas for spaces).

/bin/busybox mkdir -p /bin /dev /proc /sys /tmp /mnt
/bin/busybox --install -s /bin
export PATH=/bin:/opt/bin
mount -t proc none /proc
mount -t sysfs none /sys
[ -c /dev/null ] || mount -t devtmpfs none /dev
mkdir -p /dev/shm
mount -t tmpfs none /dev/shm
mount -t tmpfs none /tmp

give_up() {
    echo "guest: cannot run: $*"
    poweroff -f
    sleep 60
}

for word in $(cat /proc/cmdline); do
    case "$word" in guest_*=*) eval "${word%%=*}='${word#*=}'" ;; esac
done

while read -r module; do
    insmod "/modules/$module.ko" || give_up "the kernel refuses the module $module"
done </modules/order

wait_for() {
    tries=0
    until [ -e "$1" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || give_up "$1 does not appear"
        usleep 50000
    done
}

# A namespace without labels comes up raw, without struct pages, and file systems refuse DAX on it. A header that
# names it "fsdax" stays in it; the kernel finds that at the next boot by itself.
make_fsdax() {
    bus=/sys/bus/nd
    wait_for $bus/devices/namespace0.0
    echo namespace0.0 >$bus/drivers/nd_pmem/unbind 2>/dev/null
    seed=$(cat $bus/devices/region0/pfn_seed)
    echo ram >"$bus/devices/$seed/mode" || give_up "no fsdax: mode"
    echo 2097152 >"$bus/devices/$seed/align" || give_up "no fsdax: align"
    cat /proc/sys/kernel/random/uuid >"$bus/devices/$seed/uuid" || give_up "no fsdax: uuid"
    echo namespace0.0 >"$bus/devices/$seed/namespace" || give_up "no fsdax: namespace"
    echo "$seed" >$bus/drivers/nd_pmem/bind || give_up "no fsdax: bind"
}

case "$guest_kind" in
nvdimm)
    device=/dev/pmem0 options=dax=always medium=dax
    [ "$guest_first" != 1 ] || make_fsdax
    ;;
*) device=/dev/vda options=noatime medium=file ;;
esac
wait_for "$device"
if [ "$guest_first" = 1 ]; then
    /opt/bin/mke2fs -q -F -t ext4 -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 "$device" || give_up "mke2fs failed"
fi
mount -t ext4 -o "$options${guest_options:+,$guest_options}" "$device" /mnt || give_up "mounting $device failed"
echo "guest: mounted $(grep ' /mnt ' /proc/mounts)"

if [ "$guest_first" = 1 ]; then
    echo "guest: doctor $(/opt/bin/stillpoint doctor --json /mnt 2>&1 | tr '\n' ' ')"
fi

# A file that is not synced shows whether a cut takes what only the kernel's memory held. A new one for each boot: ext4 is
# careful with those that are truncated and written again.
if [ "$guest_first" != 1 ]; then
    [ "$(cat "/mnt/unsynced-$((guest_cycle - 1))" 2>/dev/null)" = "$guest_cycle" ] && state=kept || state=lost
    echo "guest: unsynced $state"
fi
echo "$((guest_cycle + 1))" >"/mnt/unsynced-$guest_cycle"

pool=/mnt/soak.pool
if [ -e "$pool" ]; then
    echo "guest: check $(/opt/bin/stillpoint check --json "$pool" 2>&1 | tr '\n' ' ')"
fi
echo "guest: starts"
/opt/bin/stillpoint run --quiet --pool "$pool" --medium "$medium" --durability power --interval-ms 5 --pool-size-mb 4 \
    --pool-max-mb 96 -- /opt/bin/soak_program /tmp/notes --report $(echo "$guest_program" | tr , ' ') 2>&1
echo "guest: ended $?"
poweroff -f
sleep 60
