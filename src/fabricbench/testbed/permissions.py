"""What this user may do here that measuring needs: raw sockets for the frame and ip layers, namespaces for the lab."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess

from fabricbench.model import Layer, Model

TRIAL_SECONDS = 5


class Permissions(Model):
    """Whether each was possible when it was tried."""

    is_root: bool
    may_open_frame_sockets: bool
    may_open_ip_sockets: bool
    may_create_user_namespaces: bool


def try_permissions() -> Permissions:
    """Try each of them, without leaving anything behind."""
    return Permissions(
        is_root=os.geteuid() == 0,
        may_open_frame_sockets=may_open_raw_socket(Layer.FRAME),
        may_open_ip_sockets=may_open_raw_socket(Layer.IP),
        may_create_user_namespaces=may_create_user_namespaces(),
    )


def may_open_raw_socket(layer: Layer) -> bool:
    """Whether this user may open the kind of socket that the frame or the ip layer needs."""
    kind = (socket.AF_PACKET, 0) if layer is Layer.FRAME else (socket.AF_INET, socket.IPPROTO_RAW)
    try:
        socket.socket(kind[0], socket.SOCK_RAW, kind[1]).close()
    except OSError:
        return False
    return True


def may_create_user_namespaces() -> bool:
    """Whether a user and a network namespace can be made here. It is tried: a dozen settings and modules can forbid it."""
    program = shutil.which("unshare", path=f"{os.environ.get('PATH', '')}:/usr/bin:/bin:/usr/sbin")
    if program is None:
        return False
    try:
        command = [program, "--user", "--map-root-user", "--net", "true"]
        return subprocess.run(command, check=False, capture_output=True, timeout=TRIAL_SECONDS).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
