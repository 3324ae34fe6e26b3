#include "cli/log_tail.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

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

std::optional<Note> NoteIn(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto offset = base::ParseInt(line.substr(0, space)),
             micros = base::ParseInt(line.substr(space + 1));
  if (!offset || !micros) return std::nullopt;
  return Note{*offset, base::Time(base::Duration(*micros))};
}

// The notes of a log, the last ones first as far as `wanted` holds for the earliest of them. Times
// never go back: a supervisor that goes on with a job may have another clock.
template <typename Wanted>
std::vector<Note> NotesWhile(const std::string& log_file, const Wanted& wanted) {
  std::vector<Note> out;
  for (size_t bytes = size_t{64} << 10;; bytes *= 4) {
    const auto text = io::ReadTail(TimesFile(log_file), bytes);
    if (!text) return {};
    const bool whole = text->size() < bytes;
    out.clear();
    bool first = true;
    for (std::string_view line : base::Split(*text, '\n')) {
      const bool cut = std::exchange(first, false) && !whole;
      if (const auto note = cut ? std::nullopt : NoteIn(line)) out.push_back(*note);
    }
    if (whole || bytes > (size_t{1} << 30) || (!out.empty() && !wanted(out.front()))) break;
  }
  for (size_t i = 1; i < out.size(); ++i) out[i].time = std::max(out[i].time, out[i - 1].time);
  return out;
}

// Those after `offset`, and the one before them if there is one.
std::vector<Note> NotesFrom(const std::string& log_file, int64_t offset) {
  return NotesWhile(log_file, [&](const Note& note) { return note.offset > offset; });
}

}  // namespace

bool LogTail::Grew() {
  if (!fd_.valid()) fd_ = io::Fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  char byte = 0;
  return fd_.valid() && pread(fd_.get(), &byte, 1, offset_) == 1;
}

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
  const auto wanted = [&](const Note& note) { return note.time >= time; };
  for (const Note& note : NotesWhile(log_file, wanted)) {
    if (wanted(note)) return offset;
    offset = note.offset;
  }
  return offset;
}

int64_t OffsetOfLastLines(const std::string& log_file, int64_t lines) {
  const io::Fd fd(open(log_file.c_str(), O_RDONLY | O_CLOEXEC));
  const int64_t size = fd.valid() ? lseek(fd.get(), 0, SEEK_END) : 0;
  std::string block(size_t{64} << 10, '\0');
  for (int64_t end = size; end > 0 && size - end < kMostTail;) {
    const int64_t begin = std::max<int64_t>(0, end - std::ssize(block));
    const ssize_t got = pread(fd.get(), block.data(), static_cast<size_t>(end - begin), begin);
    if (got != end - begin) return end;  // it was cut meanwhile
    for (int64_t at = end - 1; at >= begin; --at) {
      // The newline of the last line does not begin another.
      if (block[static_cast<size_t>(at - begin)] == '\n' && at != size - 1 && --lines <= 0)
        return at + 1;
    }
    end = begin;
  }
  return std::max<int64_t>(0, size - kMostTail);
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
    if (!tail.Grew()) continue;
    base::Time latest;
    for (const Note& note : NotesFrom(dir.LogFile(id), tail.offset())) {
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
