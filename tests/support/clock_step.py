"""Steps the wall clock of the programs under test, as somebody does who sets the time of the machine.

The machine's clock stays as it is: a library that is loaded before all others shifts what these programs read.
"""

import os
import shutil
import struct
import subprocess

SHIM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const long *seconds;

__attribute__((constructor)) static void begin(void) {
  const char *name = getenv("CLOCK_STEP_FILE");
  int fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *map = mmap(0, sizeof *seconds, PROT_READ, MAP_SHARED, fd, 0);
  if (map != MAP_FAILED) seconds = map;
  close(fd);
}

static long step(void) { return seconds ? *seconds : 0; }

int clock_gettime(clockid_t clock, struct timespec *out) {
  long result = syscall(SYS_clock_gettime, clock, out);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) out->tv_sec += step();
  return (int)result;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
"""

STEPS = (1, -1, 3600, -3600)  # seconds


class Clock:
    """The wall clock of all programs that are started with `env`."""

    def __init__(self, directory):
        directory.mkdir()
        source, library, self.file = directory / "clock_step.c", directory / "clock_step.so", directory / "seconds"
        source.write_text(SHIM)
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang-19")
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        self.file.write_bytes(struct.pack("l", 0))
        self.env = {"LD_PRELOAD": str(library), "CLOCK_STEP_FILE": str(self.file)}

    def step(self, seconds):
        """The clock differs by this much from the machine's, from now on."""
        with open(self.file, "r+b") as file:
            os.pwrite(file.fileno(), struct.pack("l", seconds), 0)
