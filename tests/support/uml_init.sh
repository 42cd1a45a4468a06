#!/bin/bash
# init of the guest, whose root is the host's file system, read-only: mounts, four hosts with a soft-RoCE port each, then what the
# host puts into FOLDER/commands: NAME.sh is run, NAME.out, NAME.err and at last NAME.rc tell how. It ends with the file FOLDER/end.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null
ln -s /proc/self/fd /dev/fd; ln -s fd/0 /dev/stdin; ln -s fd/1 /dev/stdout; ln -s fd/2 /dev/stderr
mkdir -p /dev/shm /dev/pts
for place in /dev/shm /run /mnt; do mount -t tmpfs -o mode=1777 tmpfs $place; done
for word in $(</proc/cmdline); do case $word in folder=*) folder=${word#folder=} ;; esac; done
mount -t hostfs none "$folder" -o "$folder"  # once more, and writable
cd "$folder"
mount --bind cpuinfo /proc/cpuinfo
ulimit -l unlimited
hostname guest

hosts="1 2 3 4"
# A start of a program costs 10 to 50 ms here: all of the network is one batch.
{
  echo "link set lo up"
  echo "link add br0 mtu 4200 type bridge"
  echo "link set br0 up"
  # What is sent from one of our addresses to another is to leave by the wire, not over lo.
  echo "rule add pref 1000 lookup local"
  echo "rule del pref 0"
  for i in $hosts; do
    echo "link add h$i mtu 4200 address 02:00:00:00:01:0$i type veth peer name s$i mtu 4200"
    echo "link set s$i master br0 up"
    echo "addr add 10.1.0.$i/32 dev h$i"
    echo "link set h$i up"
    echo "route add 10.1.0.0/24 dev h$i src 10.1.0.$i table 10$i"
    echo "rule add pref 9 from 10.1.0.$i to 10.1.0.$i lookup local"
    echo "rule add pref 1$i from 10.1.0.$i to 10.1.0.0/24 iif lo lookup 10$i"
    echo "rule add pref 2$i oif h$i lookup 10$i"
    for j in $hosts; do
      [ $i = $j ] || echo "neigh add 10.1.0.$j lladdr 02:00:00:00:01:0$j dev h$i nud permanent"
    done
  done
} | ip -batch - || echo "GUEST_FAILED network"
settings=/proc/sys/net/ipv4/conf
echo 1 >$settings/all/arp_ignore
echo 2 >$settings/all/arp_announce
for i in all h1 h2 h3 h4; do
  echo 1 >$settings/$i/accept_local
  echo 0 >$settings/$i/rp_filter
done
for i in $hosts; do echo "link add rxe$i type rxe netdev h$i"; done | rdma -b - || echo "GUEST_FAILED rxe"
chmod 666 /dev/infiniband/uverbs* /dev/infiniband/rdma_cm
# Ranks run in SCHED_RR: what carries their packets and makes their connections must not wait for them, nor what ends them. Linux would
# else keep all of that from running for 50 ms of each second in which none of it waits.
echo -1 >/proc/sys/kernel/sched_rt_runtime_us
echo 10 >/proc/sys/kernel/sched_rr_timeslice_ms  # a rank that spins has the processor for a tick, not for ten
chrt -r -p 1 $$
# The kernel makes threads as it needs them, and never in this class: process 2 makes them.
hasten_kernel() {
  local task stat
  for task in /proc/[0-9]*; do
    read -r stat <$task/stat || continue
    stat=(${stat##*) })
    [[ $task == /proc/2 || ${stat[1]} == 2 ]] || continue
    ((${stat[38]} != 0)) || chrt -r -p 1 ${task##*/}
  done 2>/dev/null
}
hasten_kernel

mkfifo /run/pause && exec 9<>/run/pause
run() {
  local name=$1
  bash $name.run >$name.out 2>$name.err </dev/null
  echo $? >$name.part
  mv $name.part $name.rc
}
read -r up _ </proc/uptime
echo $up >up
rounds=0
shopt -s nullglob  # else a pattern that nothing matches stays, and may match what has come by the time it is used
until [ -e end ]; do
  for command in commands/*.sh; do
    mv $command ${command%.sh}.run
    hasten_kernel
    run ${command%.sh} &
  done
  ((++rounds % 100 != 0)) || hasten_kernel
  read -r -t 0.02 -u 9  # a sleep that starts no program
done
echo GUEST_ENDED
echo o >/proc/sysrq-trigger
sleep 10
