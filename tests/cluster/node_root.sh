#!/bin/sh
# Run as the first process of a node's namespaces: node_root.sh ROOT DISK ETC SEEN...
# Makes a root file system of the node's own and sleeps. The system's programs are there to read; /etc is a copy, with
# what ETC holds put over it; /srv is the folder DISK; SEEN are further folders to read; all else is empty and in memory.
set -eu
root=$1 disk=$2 etc=$3
shift 3
mount --make-rprivate /
mount -t tmpfs -o mode=755 node "$root"
see() {
    mkdir -p "$root$1"
    mount --bind "$1" "$root$1"
    mount -o remount,bind,ro "$root$1"
}
for name in bin sbin lib lib32 lib64 libx32; do
    if [ -L "/$name" ]; then cp -a "/$name" "$root/$name"; elif [ -d "/$name" ]; then see "/$name"; fi
done
see /usr
for folder in "$@"; do see "$folder"; done
cp -a /etc "$root/etc"
cp -a "$etc/." "$root/etc/"
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/run/sshd" "$root/root/.ssh" "$root/tmp" "$root/var/empty" "$root/srv" "$root/before"
chmod 700 "$root/root" "$root/root/.ssh"
chmod 1777 "$root/tmp"
cp "$etc"/ssh/cluster/client/* "$root/root/.ssh/"
mount --bind "$disk" "$root/srv"
mount -t proc proc "$root/proc"
mount -t sysfs sys "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
cd "$root"
pivot_root . before
umount -l /before
rmdir /before
echo ready
# A shell that waits takes in whatever its programs leave behind, as a node's first process does.
sleep 3600 &
wait $!
