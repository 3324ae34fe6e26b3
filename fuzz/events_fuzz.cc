// Event files of any bytes: framing, decoding and series must neither crash nor read beyond.
//
// The first byte chooses: an even one takes the rest as a file, as it lies on disk; an odd one
// takes it as the data of one record, so that decoding is reached without a checksum to guess.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

#include "events/event.h"
#include "events/record_reader.h"
#include "events/series.h"

namespace {

void Decode(std::string_view record, events::Series* series) {
  static events::Event event;
  if (!events::DecodeEvent(record, &event)) return;
  if (event.session_start) series->Restart(1, event.step);
  for (const events::Scalar& scalar : event.scalars) {
    series->Add(static_cast<int>(scalar.tag.size() % 3),
                {event.step, event.wall_time, scalar.value});
  }
}

void ReadFile(std::string_view bytes, events::Series* series) {
  static const int fd = memfd_create("events", 0);
  if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes.data(), bytes.size(), 0) < 0) std::abort();
  events::RecordReader reader;
  reader.Start(fd, 0, bytes.size());
  for (uint64_t before = 0;; before = reader.offset()) {
    using Found = events::RecordReader::Found;
    const Found found = reader.Next();
    if (reader.offset() > bytes.size()) std::abort();
    if (found == Found::kNoMore || found == Found::kBadLength) return;
    if (found == Found::kFailed || reader.offset() <= before) std::abort();
    if (found == Found::kRecord) Decode(reader.record(), series);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  events::Series series;
  if (data[0] % 2 == 0) {
    ReadFile(rest, &series);
  } else {
    Decode(rest, &series);
  }
  const auto points = series.Points();
  if (points.size() > events::Series::kMaxPoints) std::abort();
  for (size_t i = 1; i < points.size(); ++i) {
    if (points[i - 1].step >= points[i].step) std::abort();
  }
  return 0;
}
