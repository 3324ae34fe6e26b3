// Times the reading of event files; bench/events_bench.py sets it beside TensorBoard's readers.
//
//   events_bench make DIR MEGABYTES   writes DIR/train/events.out.tfevents.*, always the same bytes
//   events_bench read DIR             everything: find, check, decode, keep series
//   events_bench scan FILE            records with their checksums, nothing decoded
//   events_bench map FILE             the same over a mapped file: why we do not map
//   events_bench poll DIR             a poll that finds nothing new
//   events_bench crc                  the checksum alone, over 1 MiB
//
// Prints wall and CPU seconds and megabytes (10^6 bytes) as one JSON object.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "events/event_writer.h"
#include "events/log_dir.h"
#include "events/record_reader.h"

namespace {

namespace fs = std::filesystem;

base::Time Now() {
  return std::chrono::time_point_cast<base::Duration>(std::chrono::system_clock::now());
}

double CpuSeconds() {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Runs the work, which returns the bytes it read, and prints what it took.
void Time(const std::function<uint64_t()>& work) {
  const double cpu_begin = CpuSeconds();
  const auto begin = std::chrono::steady_clock::now();
  const uint64_t bytes = work();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("{\"seconds\": %.9f, \"cpu_seconds\": %.9f, \"megabytes\": %.6f}\n", took.count(),
              CpuSeconds() - cpu_begin, static_cast<double>(bytes) / 1e6);
}

// A training that writes six scalars every step, as tf.summary.scalar does.
int Make(const fs::path& root, uint64_t megabytes) {
  static constexpr const char* kTags[] = {"epoch_loss",     "epoch_accuracy", "batch_loss",
                                          "batch_accuracy", "learning_rate",  "gradients/norm"};
  fs::create_directories(root / "train");
  const fs::path path = root / "train" / "events.out.tfevents.1700000000.bench.1.0.v2";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return std::perror(path.c_str()), 1;
  std::string block = events::Record(events::FileVersion());
  uint64_t written = 0;
  for (int64_t step = 0; written + block.size() < megabytes * 1'000'000; ++step) {
    const double wall_time = 1.7e9 + static_cast<double>(step) * 0.011;
    float value = 1 / std::sqrt(1 + static_cast<float>(step));
    for (const char* tag : kTags) {
      block += events::Record(events::EventOf(step, wall_time, events::ScalarTf2(tag, value)));
      value = 1 - value;
    }
    if (block.size() < 1 << 20) continue;
    written += std::fwrite(block.data(), 1, block.size(), file);
    block.clear();
  }
  std::fwrite(block.data(), 1, block.size(), file);
  return std::fclose(file) == 0 ? 0 : 1;
}

uint64_t Read(const std::string& root) {
  events::LogDirReader reader(root);
  reader.Poll(Now());
  return static_cast<uint64_t>(reader.counts().bytes);
}

uint64_t Scan(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) return 0;
  events::RecordReader reader;
  reader.Start(fd, 0, static_cast<uint64_t>(status.st_size));
  while (reader.Next() == events::RecordReader::Found::kRecord) {
  }
  close(fd);
  return reader.offset();
}

uint64_t ScanMapped(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) return 0;
  const auto size = static_cast<uint64_t>(status.st_size);
  void* map = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (map == MAP_FAILED) return 0;
  madvise(map, size, MADV_SEQUENTIAL);
  const char* bytes = static_cast<const char*>(map);
  uint64_t offset = 0;
  while (size - offset >= 16) {
    uint64_t length;
    uint32_t length_sum;
    uint32_t data_sum;
    std::memcpy(&length, bytes + offset, sizeof length);
    std::memcpy(&length_sum, bytes + offset + 8, sizeof length_sum);
    if (base::Masked(base::Crc32c({bytes + offset, 8})) != length_sum) break;
    if (length > size - offset - 16) break;
    std::memcpy(&data_sum, bytes + offset + 12 + length, sizeof data_sum);
    if (base::Masked(base::Crc32c({bytes + offset + 12, length})) != data_sum) break;
    offset += 16 + length;
  }
  munmap(map, size);
  return offset;
}

uint64_t Checksum() {
  static const std::string bytes(1 << 20, 'x');
  constexpr uint64_t kTimes = 2000;
  uint32_t crc = 0;
  for (uint64_t i = 0; i < kTimes; ++i) crc = base::ExtendCrc32c(crc, bytes);
  return crc == 0 ? 0 : kTimes * bytes.size();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::string where = argc > 2 ? argv[2] : "";
  if (what == "make" && argc == 4) return Make(where, std::stoull(argv[3]));
  if (what == "crc") return Time(Checksum), 0;
  if (argc != 3) return std::fprintf(stderr, "usage: see bench/events_bench.cc\n"), 2;
  if (what == "read") return Time([&] { return Read(where); }), 0;
  if (what == "scan") return Time([&] { return Scan(where); }), 0;
  if (what == "map") return Time([&] { return ScanMapped(where); }), 0;
  if (what == "poll") {
    events::LogDirReader reader(where);
    reader.Poll(Now());
    return Time([&] { return reader.Poll(Now()).scalars ? 1 : 0; }), 0;
  }
  return std::fprintf(stderr, "usage: see bench/events_bench.cc\n"), 2;
}
