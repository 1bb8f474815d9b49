"""The system calls that learner code has no business with, as a seccomp filter.

A list of what is refused, closed towards the future: a number that this module
does not know is refused too. The lists are the ways by which sandboxes have
been left (further namespaces, keys, io_uring, bpf, other processes' memory)
and the ways to hold memory that no limit counts.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

PR_SET_NO_NEW_PRIVS = 38
PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_LOAD, _JEQ, _JGE, _JSET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARGUMENTS = 0, 4, 16
"""Offsets into the kernel's struct seccomp_data."""

_LAST_KNOWN = 466
"""removexattrat of Linux 6.13; from 424 on numbers are the same everywhere."""
_X32 = 0x40000000
_NEW_NAMESPACES = 0x7E020000
"""All CLONE_NEW* flags that clone(2) knows."""

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

# name: number on (x86_64, aarch64)
_NOT_PERMITTED = {
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    # namespaces and mounts
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    # what others do with files that all rooms and the machine share
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    # keys, which cross namespaces
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    # doors into the kernel
    "bpf": (321, 280),
    "seccomp": (317, 277),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "create_module": (174, None),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "_sysctl": (156, None),
    "personality": (135, 92),
    "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42),
    "syslog": (103, 116),
    # the machine
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "vhangup": (153, 58),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
}
# what programs take for an old kernel and do without
_NOT_THERE = {
    "clone3": (435, 435),  # its flags are out of a filter's sight
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    # memory that neither RLIMIT_DATA nor a sized tmpfs counts
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    # old doors that nothing here uses
    "io_setup": (206, 0),
    "vmsplice": (278, 75),
    "remap_file_pages": (216, 234),
}
_CLONE = (56, 220)
_MMAP = (9, 222)
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
_SOCKET = (41, 198)
_SOCKETPAIR = (53, 199)
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16


def supported() -> bool:
    """Whether this module knows the system calls of this machine."""
    return platform.machine() in _ARCHITECTURES


def install() -> None:
    """Puts the filter on this process and all that it will start, for good.

    Raises:
        OSError: the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    code = _program()
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    for arguments in (
        (PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0),
    ):
        if libc.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "seccomp filter refused")


def _program() -> bytes:
    arch, column = _ARCHITECTURES[platform.machine()]
    not_there = _ERRNO | errno.ENOSYS
    lines = [
        _line(_LOAD, _ARCH),
        _line(_JEQ, arch, 1, 0),
        _line(_RETURN, not_there),  # 32-bit calls
        _line(_LOAD, _NR),
        _line(_JGE, min(_LAST_KNOWN + 1, _X32), 0, 1),
        _line(_RETURN, not_there),
    ]
    for table, answer in (
        (_NOT_PERMITTED, _ERRNO | errno.EPERM),
        (_NOT_THERE, not_there),
    ):
        for numbers in table.values():
            number = numbers[column]
            if number is not None:
                lines += [
                    _line(_JEQ, number, 0, 1),
                    _line(_RETURN, answer),
                ]
    lines += [
        _line(_JEQ, _CLONE[column], 0, 4),
        _line(_LOAD, _ARGUMENTS),
        _line(_JSET, _NEW_NAMESPACES, 0, 1),
        _line(_RETURN, _ERRNO | errno.EPERM),
        _line(_RETURN, _ALLOW),
        # shared memory without a file: pages that no process has any more stay
        # in the kernel, and no limit counts them
        _line(_JEQ, _MMAP[column], 0, 5),
        _line(_LOAD, _ARGUMENTS + 3 * 8),
        _line(_JSET, _MAP_ANONYMOUS, 0, 2),
        _line(_JSET, _MAP_SHARED, 0, 1),
        _line(_RETURN, _ERRNO | errno.EPERM),
        _line(_RETURN, _ALLOW),
        # families such as vsock leave a network namespace
        _line(_JEQ, _SOCKET[column], 2, 0),
        _line(_JEQ, _SOCKETPAIR[column], 1, 0),
        _line(_RETURN, _ALLOW),
        _line(_LOAD, _ARGUMENTS),
        _line(_JEQ, _AF_UNIX, 5, 0),
        _line(_JEQ, _AF_INET, 4, 0),
        _line(_JEQ, _AF_INET6, 3, 0),
        _line(_JEQ, _AF_NETLINK, 0, 3),
        _line(_LOAD, _ARGUMENTS + 2 * 8),
        _line(_JEQ, 0, 0, 1),  # NETLINK_ROUTE: the list of interfaces
        _line(_RETURN, _ALLOW),
        _line(_RETURN, _ERRNO | errno.EAFNOSUPPORT),
    ]
    return b"".join(lines)


def _line(
    code: int, operand: int, if_true: int = 0, if_false: int = 0
) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, operand)
