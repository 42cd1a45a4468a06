"""What is counted of a cell beside its messages, of a rank's process, its host's network stack and port, and its machine. Pure.

The measurer reads counters before a cell's measured part and after it (native/core/counters.cpp says which files hold them). Times
are in ns. One that is missing could not be read, and `NotCounted` says why; 0 is a count.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from fabricbench.model import Model


class CounterScope(StrEnum):
    """Whose counters: of a rank's process; of its host, a network namespace; of the machine, which hosts of a lab share."""

    RANK = "rank"
    HOST = "host"
    MACHINE = "machine"


class Counter(StrEnum):
    """What is counted. Sources: getrusage(2), perf_event_open(2), proc_stat(5), /proc/net/snmp and netstat, sysfs.

    Of a rank `elapsed_ns` is the time between the readings; of a host and a machine as well. `reading_ns` is what both readings
    took. Messages are all that a rank sent and received in between, those of the warm-up and untimed ones among them; only patterns
    of two ranks tell. Cycles, instructions and cache misses are of the rank's thread and those that it starts, in the kernel and
    outside it; `user_*` of outside alone, where the host forbids more. How processor time is split into user and system the kernel
    estimates by its tick on most hosts; their sum is exact. A machine's times are in ticks of 10 ms, of all its processors;
    `device_interrupts` are those of the fabric's adapter.
    """

    ELAPSED_NS = "elapsed_ns"
    READING_NS = "reading_ns"
    MESSAGES_SENT = "messages_sent"
    MESSAGES_RECEIVED = "messages_received"
    USER_NS = "user_ns"
    SYSTEM_NS = "system_ns"
    VOLUNTARY_SWITCHES = "voluntary_switches"
    INVOLUNTARY_SWITCHES = "involuntary_switches"
    MINOR_FAULTS = "minor_faults"
    MAJOR_FAULTS = "major_faults"
    MIGRATIONS = "migrations"
    CYCLES = "cycles"
    INSTRUCTIONS = "instructions"
    CACHE_MISSES = "cache_misses"
    USER_CYCLES = "user_cycles"
    USER_INSTRUCTIONS = "user_instructions"
    USER_CACHE_MISSES = "user_cache_misses"
    BUSY_NS = "busy_ns"
    IDLE_NS = "idle_ns"
    INTERRUPT_NS = "interrupt_ns"
    SOFTIRQ_NS = "softirq_ns"
    STOLEN_NS = "stolen_ns"
    INTERRUPTS = "interrupts"
    DEVICE_INTERRUPTS = "device_interrupts"
    SOFTIRQS = "softirqs"
    RECEIVE_SOFTIRQS = "receive_softirqs"
    SEND_SOFTIRQS = "send_softirqs"
    CONTEXT_SWITCHES = "context_switches"
    TCP_SENT = "tcp_sent"
    TCP_RECEIVED = "tcp_received"
    TCP_RETRANSMISSIONS = "tcp_retransmissions"
    TCP_TIMEOUTS = "tcp_timeouts"
    TCP_DELAYED_ACKS = "tcp_delayed_acks"
    TCP_DROPS = "tcp_drops"
    UDP_RECEIVE_DROPS = "udp_receive_drops"
    UDP_SEND_DROPS = "udp_send_drops"
    IP_DROPS = "ip_drops"
    PORT_RECEIVE_DROPS = "port_receive_drops"
    PORT_SEND_DROPS = "port_send_drops"
    PORT_ERRORS = "port_errors"


class Uncounted(StrEnum):
    """Why a counter is missing: the kernel or the machine has none, this user may not read it, or nobody asked for it."""

    ABSENT = "absent"
    FORBIDDEN = "forbidden"
    UNASKED = "unasked"


class NotCounted(Model):
    """Counters that ranks could not read in a launch: `detail` is what the call or file said.

    `first_rank` is the first of these ranks, `ranks` how many they are.
    """

    counters: tuple[Counter, ...]
    why: Uncounted
    detail: str
    first_rank: int
    ranks: int = Field(ge=1)
