"""An emulated machine with cgroup v2, for what the machine that runs the tests may not have.

It is QEMU without hardware support, Debian's cloud kernel, and an archive in memory that holds busybox, the program
with its libraries, and the scenes: shell scripts. They run one after the other, each writes what it sees, and then the
machine turns itself off. What they write comes out of a serial line of its own, apart from what the kernel says.
"""

import dataclasses
import pathlib
import re
import shutil
import subprocess

from yard import BINARY, ROOT

SECONDS = 600  # far more than it takes: the emulated machine shares its cores with whatever else runs

INIT = """#!/bin/sh
/bin/busybox --install -s /bin
mkdir -p /proc /sys /dev /tmp /run
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
chmod 1777 /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ifconfig lo up
stty -F /dev/ttyS1 raw
exec </dev/null >/dev/ttyS1 2>&1
export HOME=/root LC_ALL=C.UTF-8
for scene in /scenes/*; do
  name=${scene##*/}
  echo "@@ begin $name"
  mkdir -p /home/$name && cd /home/$name && chmod 777 .
  timeout 120 sh -c ". /lib/scene.sh; . $scene" >/tmp/seen 2>&1  # no terminal: plain words
  status=$?
  cat /tmp/seen
  echo "@@ end $name $status"
  # What a scene leaves must not be the next one's trouble: end all but us.
  kill -9 -1
  while [ -n "$(find /sys/fs/cgroup -mindepth 1 -type d)" ]; do
    find /sys/fs/cgroup -mindepth 1 -depth -type d -exec rmdir {} ';' 2>/dev/null
  done
done
echo "@@ off"
poweroff -f
"""

# Grows by a mebibyte every five milliseconds, so that polling has time to see it.
HOG = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main() { for (;; usleep(5000)) memset(malloc(1 << 20), 1, 1 << 20); }
"""


@dataclasses.dataclass
class Seen:
    """What a scene wrote, and with which status it ended."""
    text: str
    status: int


def libraries(program):
    """The shared libraries of a program, the loader among them."""
    lines = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", lines)


def write(path, text, mode=0o644):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def make_tree(root, scenes, prelude, files):
    """All that the machine has, below `root`."""
    for folder in ("bin", "etc", "root", "lib", "scenes", "home"):
        (root / folder).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin/busybox")
    shutil.copy(BINARY, root / "bin/trainyard")
    (root / "libexec").mkdir()
    shutil.copy(BINARY.parent / "libexec/trainyard-guard", root / "libexec")
    for library in libraries(BINARY):
        target = root / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
    (root / "bin/sh").symlink_to("busybox")
    source = root / "hog.c"
    source.write_text(HOG)
    subprocess.run(["gcc", "-O1", "-static", "-o", root / "bin/hog", source], check=True)
    source.unlink()
    # `run` wants a Python, though no command in here names it.
    write(root / "bin/python3", "#!/bin/sh\nexit 1\n", 0o755)
    write(root / "init", INIT, 0o755)
    write(root / "etc/passwd", "root:x:0:0::/root:/bin/sh\nsomebody:x:1000:1000::/tmp:/bin/sh\n")
    write(root / "etc/group", "root:x:0:\nsomebody:x:1000:\n")
    write(root / "lib/scene.sh", prelude)
    for name, text in files.items():
        write(root / name, text, 0o755 if text.startswith("#!") else 0o644)
    for number, (name, text) in enumerate(scenes.items()):
        write(root / f"scenes/{number:02}-{name}", text)


def archive(root, target):
    names = "\n".join(sorted(str(path.relative_to(root)) for path in root.rglob("*")))
    with open(target, "wb") as out:
        subprocess.run(["cpio", "--create", "--format=newc", "--owner=0:0", "--quiet"], cwd=root, input=names.encode(),
                       stdout=out, check=True)


def run(folder, scenes, prelude="", files=None):
    """Runs the scenes (name -> shell script) in a machine and returns what was seen (name -> Seen)."""
    folder = pathlib.Path(folder)
    make_tree(folder / "tree", scenes, prelude, files or {})
    archive(folder / "tree", folder / "initrd")
    kernel = subprocess.run([ROOT / "script/vm-kernel"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    output, console = folder / "output", folder / "console"
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "512", "-nodefaults",
               "-no-user-config", "-display", "none", "-no-reboot", "-kernel", kernel, "-initrd", folder / "initrd",
               "-append", "console=ttyS0 panic=-1 quiet", "-serial", f"file:{console}", "-serial", f"file:{output}"]
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, timeout=SECONDS, check=True)
        late = ""
    except subprocess.TimeoutExpired:
        late = f"the machine is still on after {SECONDS} s\n"
    text = output.read_text(errors="replace").replace("\r", "") if output.exists() else ""
    assert "@@ off" in text, f"{late}{text}\nthe kernel said:\n{console.read_text(errors='replace')}"
    found = re.findall(r"^@@ begin \d+-(\S+)\n(.*?)^@@ end \S+ (\d+)\n", text, re.M | re.S)
    return {name: Seen(body, int(status)) for name, body, status in found}
