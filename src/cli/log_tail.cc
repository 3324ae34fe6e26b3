#include "cli/log_tail.h"

#include <algorithm>
#include <tuple>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "base/strings.h"

namespace cli {
namespace {

struct Note {
  int64_t offset;
  base::Time time;
};

std::string TimesFile(const std::string& log_file) {
  return log_file.substr(0, log_file.rfind('.')) + ".times";
}

std::vector<Note> Notes(const std::string& log_file) {
  std::vector<Note> out;
  auto text = io::ReadFile(TimesFile(log_file), size_t{1} << 30);
  if (!text) return out;
  for (std::string_view line : base::Split(*text, '\n')) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) continue;
    const auto offset = base::ParseInt(line.substr(0, space)),
               micros = base::ParseInt(line.substr(space + 1));
    if (offset && micros) out.push_back({*offset, base::Time(base::Duration(*micros))});
  }
  return out;
}

}  // namespace

std::string LogTail::ReadNew(size_t limit) {
  if (!fd_.valid()) fd_ = io::Fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  std::string out;
  if (!fd_.valid()) return out;
  char buffer[65536];
  while (out.size() < limit) {
    const ssize_t size =
        pread(fd_.get(), buffer, std::min(sizeof buffer, limit - out.size()), offset_);
    if (size <= 0) break;
    out.append(buffer, static_cast<size_t>(size));
    offset_ += size;
  }
  return out;
}

void NoteTime(const std::string& log_file, int64_t offset, base::Time now) {
  base::IgnoreError(io::AppendFile(TimesFile(log_file),
                                   fmt::format("{} {}\n", offset, now.time_since_epoch().count())),
                    "only the order of lines in `logs` suffers");
}

int64_t OffsetAt(const std::string& log_file, base::Time time) {
  int64_t offset = 0;
  for (const Note& note : Notes(log_file)) {
    if (note.time >= time) return offset;
    offset = note.offset;
  }
  return offset;
}

std::vector<TimedChunk> ReadInOrder(std::map<api::ReplicaId, LogTail>& tails,
                                    const backend::local::JobDir& dir) {
  std::vector<TimedChunk> out;
  for (auto& [id, tail] : tails) {
    const auto take = [&](base::Time time, size_t limit) {
      const int64_t begin = tail.offset();
      std::string bytes = tail.ReadNew(limit);
      if (bytes.empty()) return false;
      out.push_back({id, time, begin, std::move(bytes)});
      return true;
    };
    base::Time latest;
    for (const Note& note : Notes(dir.LogFile(id))) {
      latest = note.time;
      if (note.offset > tail.offset())
        take(note.time, static_cast<size_t>(note.offset - tail.offset()));
    }
    while (take(latest, 1 << 20)) {
    }
  }
  std::ranges::sort(out, {}, [](const TimedChunk& c) { return std::tuple(c.time, c.id, c.begin); });
  return out;
}

}  // namespace cli
