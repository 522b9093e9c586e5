"""Programs that mean harm, each with the ends that it may come to.

A program prints HARM when it achieved what it should not. It may print what it found out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Hostile:
    source: str
    ends: tuple[str, ...]
    says: str = ""
    """Something it must have printed, which shows that it came as far as it was meant to."""


def hostile(source: str, *ends: str, says: str = "") -> Hostile:
    return Hostile(dedent(source).strip(), ends, says)


SYSCALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    print("calling", flush=True)
    result = libc.syscall(*(ctypes.c_long(argument) for argument in arguments))
    print("HARM" if result >= 0 else os.strerror(ctypes.get_errno()))
"""

PROGRAMS: Mapping[str, Hostile] = {
    "fork_bomb": hostile(
        """
        import os
        while True:
            try:
                os.fork()
            except OSError:
                pass
        """,
        "timeout",
    ),
    "fork_count": hostile(
        """
        import os, time
        for count in range(1000):
            try:
                if os.fork() == 0:
                    time.sleep(60)
            except OSError as error:
                print("stopped", error)
                break
        print("HARM" if count > 8 else count)
        """,
        "finished",
        says="stopped",
    ),
    "thread_bomb": hostile(
        """
        import threading, time
        count = 0
        try:
            while True:
                threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
                count += 1
        except RuntimeError as error:
            print("stopped", error)
        print("HARM" if count > 8 else count)
        """,
        "finished",
        says="stopped",
    ),
    "process_relay": hostile(
        """
        import os
        while True:
            if os.fork():
                os._exit(0)
        """,
        "finished",
    ),
    "memory_at_once": hostile("held = bytearray(10**12)\nprint('HARM')", "memory"),
    "memory_in_steps": hostile(
        """
        held = []
        while True:
            held.append(bytearray(1 << 20))
        """,
        "memory",
    ),
    "memory_of_many": hostile(
        """
        import os, time
        for _ in range(6):
            if os.fork() == 0:
                break
        held = bytearray(60 << 20)
        time.sleep(60)
        """,
        "memory",
    ),
    "shared_memory_of_many": hostile(
        """
        import mmap, os, time
        for _ in range(6):
            if os.fork() == 0:
                break
        held = mmap.mmap(-1, 60 << 20)
        held.write(b"x" * (60 << 20))
        time.sleep(60)
        """,
        "memory",
    ),
    "expanding_archive": hostile(
        """
        import zlib
        packer = zlib.compressobj(9)
        packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(1000)) + packer.flush()
        print(len(packed), flush=True)
        print(len(zlib.decompress(packed)), "HARM")
        """,
        "memory",
        "timeout",
    ),
    "memory_files": hostile(
        """
        import os
        for make in (lambda: os.memfd_create("x"), ):
            try:
                make()
                print("HARM")
            except OSError as error:
                print("refused", error)
        """,
        "finished",
        says="refused",
    ),
    "system_v_memory": hostile(SYSCALL + "call(29, 0, 1 << 30, 0o1600)", "finished"),
    "disk_fill": hostile(
        """
        written = 0
        try:
            for number in range(10**6):
                with open(f"{number}", "wb") as file:
                    written += file.write(bytes(1 << 20))
        except OSError as error:
            print("stopped", error)
        print("HARM" if written > 40 << 20 else written)
        """,
        "finished",
        says="stopped",
    ),
    "many_files": hostile(
        """
        import os
        count = 0
        try:
            while True:
                os.mkdir(f"d{count}")
                count += 1
        except OSError as error:
            print("stopped", error)
        print("HARM" if count > 2000 else count)
        """,
        "finished",
        says="stopped",
    ),
    "large_file": hostile(
        """
        import signal
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        with open("large", "wb") as file:
            while True:
                file.write(bytes(1 << 20))
        """,
        "file_size",
    ),
    "sparse_file": hostile(
        """
        try:
            with open("sparse", "wb") as file:
                file.truncate(1 << 40)
            print("HARM")
        except OSError as error:
            print("refused", error)
        """,
        "finished",
        says="refused",
    ),
    "many_descriptors": hostile(
        """
        import os
        held = []
        try:
            while True:
                held.append(os.pipe())
        except OSError as error:
            print("stopped", error)
        print("HARM" if len(held) > 64 else len(held))
        """,
        "finished",
        says="stopped",
    ),
    "network_v4": hostile(
        """
        import socket
        socket.create_connection(("127.0.0.1", @PORT@), timeout=2).send(b"HARM")
        print("HARM")
        """,
        "failed",
    ),
    "network_v6": hostile(
        """
        import socket
        sender = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        sender.sendto(b"HARM", ("::1", @PORT@))
        print("HARM")
        """,
        "failed",
    ),
    "unix_socket": hostile(
        """
        import socket
        for address in ("@SOCKET@", chr(0) + "weft-hostile"):
            try:
                socket.socket(socket.AF_UNIX).connect(address)
                print("HARM")
            except OSError as error:
                print("refused", error)
        """,
        "finished",
        says="refused",
    ),
    "name_lookup": hostile(
        "import socket\nprint(socket.getaddrinfo('example.com', 80), 'HARM')", "failed"
    ),
    "raw_packets": hostile(
        "import socket\nsocket.socket(socket.AF_PACKET, socket.SOCK_RAW)\nprint('HARM')", "failed"
    ),
    "read_outside": hostile(
        """
        import os
        for path in ("@SECRET@", "/etc/passwd", "/etc/shadow", "/proc/1/environ", "/sys", "/home",
                     "/dev/vda", "/dev/mem", "/var/log", "../../etc/passwd", "/outside", "/tmp"):
            try:
                print("HARM", path, os.listdir(path) if os.path.isdir(path) else open(path).read())
            except OSError as error:
                print("refused", error)
        """,
        "finished",
        says="refused",
    ),
    "linked_outside": hostile(
        """
        import os
        for number, path in enumerate(("@SECRET@", "/proc/1/root/etc/passwd", "/proc/self/cwd")):
            os.symlink(path, f"link{number}")
            try:
                print("HARM", open(f"link{number}").read())
            except OSError as error:
                print("refused", error)
            try:
                os.link(path, f"hard{number}")
                print("HARM")
            except OSError as error:
                print("refused", error)
        """,
        "finished",
        says="refused",
    ),
    "write_outside": hostile(
        """
        import os, sys
        for path in (sys.executable, os.__file__, "/new", "/usr/lib/new", "/dev/new", "@SECRET@"):
            try:
                with open(path, "ab") as file:
                    file.write(b"x")
                print("HARM", path)
            except OSError as error:
                print("refused", error)
            try:
                os.chmod(path, 0o777)
                print("HARM", path)
            except OSError as error:
                print("refused", error)
        """,
        "finished",
        says="refused",
    ),
    "processes_of_others": hostile(
        """
        import os
        try:
            print("HARM", os.listdir("/proc"))
        except OSError as error:
            print("refused", error)
        print("HARM" if os.getpid() > 100 else os.getpid())
        with open("/dev/null", "w") as nowhere:
            print("nowhere", file=nowhere)
        """,
        "finished",
        says="refused",
    ),
    "environment": hostile(
        """
        import os
        print(dict(os.environ))
        print("HARM" if any("WEFT" in each for each in (*os.environ, *os.environ.values())) else 0)
        """,
        "finished",
    ),
    "never_ending": hostile("while True:\n    pass", "timeout"),
    "sleeping": hostile("import time\ntime.sleep(10**6)", "timeout"),
    "stopped": hostile("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", "timeout"),
    "deaf": hostile(
        """
        import signal
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        while True:
            pass
        """,
        "timeout",
    ),
    "signals_to_others": hostile(
        """
        import os, signal
        os.setpgid(0, 0) if os.getpgrp() != os.getpid() else None
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for pid in (1, os.getppid(), @PID@, -1, *range(3, 3000)):
            for number in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGSTOP):
                try:
                    os.kill(pid, number)
                except OSError as error:
                    assert isinstance(error, (ProcessLookupError, PermissionError)), error
        print("still here")
        """,
        "finished",
        says="still here",
    ),
    "signals_to_group": hostile("import os, signal\nos.killpg(0, signal.SIGKILL)", "killed"),
    "inherited_descriptors": hostile(
        """
        import os
        for number in range(3, 1024):
            try:
                print("HARM", number, os.fstat(number))
            except OSError:
                pass
        print("none")
        """,
        "finished",
        says="none",
    ),
    "closed_descriptors": hostile(
        """
        import os
        os.closerange(0, 1024)
        os.write(1, b"gone")
        """,
        "failed",
    ),
    "much_output": hostile("while True:\n    print('x' * 10000)", "output"),
    "much_complaint": hostile(
        "import sys\nwhile True:\n    sys.stderr.write('x' * 10000)", "output"
    ),
    "no_text": hostile(
        "import sys\nsys.stdout.buffer.write(bytes(range(256)) + b'\\x1b[2J\\x00' * 9)", "finished"
    ),
    "deep_recursion": hostile(
        """
        import sys
        sys.setrecursionlimit(10**9)
        class Deep:
            def __repr__(self):
                return repr(self)
        repr(Deep())
        """,
        "killed",
        "memory",
        "failed",
    ),
    "stack_in_threads": hostile(
        """
        import sys, threading
        threading.stack_size(1 << 40)
        threading.Thread(target=print).start()
        """,
        "failed",
        "memory",
    ),
    "trace_first": hostile(SYSCALL + "call(101, 16, 1, 0, 0)", "denied", says="calling"),
    "read_memory": hostile(SYSCALL + "call(310, 1, 0, 0, 0, 0, 0)", "denied", says="calling"),
    "mount": hostile(SYSCALL + "call(165, 0, 0, 0, 0, 0)", "denied", says="calling"),
    "new_namespace": hostile(SYSCALL + "call(272, 0x10000000)", "denied", says="calling"),
    "clone_namespace": hostile(
        SYSCALL + "call(56, 0x10000011, 0, 0, 0, 0)", "denied", says="calling"
    ),
    "clone3": hostile(SYSCALL + "call(435, 0, 88)", "finished", says="not implemented"),
    "change_root": hostile("import os\nos.mkdir('x')\nos.chroot('x')\nprint('HARM')", "denied"),
    "kernel_program": hostile(SYSCALL + "call(321, 0, 0, 0)", "denied", says="calling"),
    "other_architecture": hostile(
        SYSCALL + "call(0x40000000 + 41, 2, 1, 0)", "denied", says="calling"
    ),
    "rings": hostile(SYSCALL + "call(425, 8, 0)", "finished", says="not implemented"),
    "key_ring": hostile(SYSCALL + "call(248, 0, 0, 0, 0, 0)", "denied", says="calling"),
    "reboot": hostile(SYSCALL + "call(169, 0, 0, 0, 0)", "denied", says="calling"),
    "device": hostile(
        """
        import os, stat
        for make in (lambda: os.mknod("disk", 0o600 | stat.S_IFBLK, os.makedev(254, 0)),
                     lambda: os.mknod("mem", 0o600 | stat.S_IFCHR, os.makedev(1, 1))):
            try:
                make()
                print("HARM")
            except OSError as error:
                print("refused", error)
        """,
        "finished",
        says="refused",
    ),
    "other_user": hostile(
        """
        import os, shutil, sys
        for change in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]),
                       lambda: os.chown(".", 0, 0), lambda: os.nice(-5)):
            try:
                if os.getuid() != 0:
                    change()
                    print("HARM")
            except OSError as error:
                print("refused", error)
        shutil.copy(sys.executable, "python")
        os.chmod("python", 0o4755)
        for path in ("/bin/su", "/usr/bin/sudo", "/bin/mount", "/bin/sh"):
            try:
                os.execv(path, [path])
            except OSError as error:
                print("refused", error)
        """,
        "finished",
        says="refused",
    ),
    "urgent": hostile(
        """
        import os
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
            print("HARM")
        except OSError as error:
            print("refused", error)
        """,
        "finished",
        says="refused",
    ),
    "daemon": hostile(
        """
        import os, time
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    print("daemon", flush=True)
                    time.sleep(10**6)
                os._exit(0)
        time.sleep(0.3)
        """,
        "finished",
        says="daemon",
    ),
    "terminal": hostile(
        """
        import fcntl, os
        try:
            fcntl.ioctl(0, 0x5412, b"x")
            print("HARM")
        except OSError as error:
            print("refused", error)
        try:
            os.open("/dev/tty", os.O_RDWR)
            print("HARM")
        except OSError as error:
            print("refused", error)
        """,
        "finished",
        says="refused",
    ),
    "input_for_ever": hostile(
        """
        import os, sys
        try:
            while True:
                os.write(0, b"x" * 4096)
            print("HARM")
        except OSError as error:
            print("refused", error)
        print(len(sys.stdin.read()))
        """,
        "finished",
        says="refused",
    ),
    "limits_raised": hostile(
        """
        import resource
        for kind in (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_CPU):
            try:
                resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                print("HARM")
            except (OSError, ValueError) as error:
                print("refused", error)
        """,
        "finished",
        says="refused",
    ),
    "core_dump": hostile("import os\nos.abort()", "killed"),
    "imports": hostile(
        """
        import sys
        for name in ("weft", "numpy", "pip", "torch"):
            try:
                __import__(name)
                print("HARM", name)
            except ImportError as error:
                print("refused", error)
        """,
        "finished",
        says="refused",
    ),
}
