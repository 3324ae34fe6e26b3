#include "cli/live_block.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "base/duration.h"
#include "base/quantity.h"

namespace cli {
namespace {

constexpr size_t kMostRows = 16;

bool StartsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

std::string Number(std::optional<double> value, const char* format) {
  return value && std::isfinite(*value) ? fmt::format(fmt::runtime(format), *value) : "-";
}

std::string Seconds(base::Duration duration) {
  const double seconds = std::chrono::duration<double>(duration).count();
  return seconds < 60 ? fmt::format("{:.1f}s", std::max(0.0, seconds))
                      : base::FormatShortDuration(duration);
}

struct Column {
  std::string title;
  std::vector<std::string> cells;
  bool right = true;
  size_t Width() const {
    size_t width = title.size();
    for (const std::string& cell : cells)
      width = std::max(width, static_cast<size_t>(DisplayWidth(cell)));
    return width;
  }
};

std::vector<Column> Columns(const std::vector<LiveRow>& rows) {
  std::vector<Column> columns = {{"role", {}, false},
                                 {"state", {}, false},
                                 {"step"},
                                 {"loss"},
                                 {"step/s"},
                                 {"cpu"},
                                 {"mem"},
                                 {"last"}};
  for (const LiveRow& row : rows) {
    const std::string cells[] = {
        row.name,
        row.state,
        row.step ? std::to_string(*row.step) : "-",
        Number(row.loss, "{:.4f}"),
        Number(row.steps_per_second, "{:.1f}"),
        Number(row.cpu_percent, "{:.0f}%"),
        row.memory_bytes ? base::FormatBytes(*row.memory_bytes) : "-",
        row.since_output ? Seconds(*row.since_output) : "-",
    };
    for (size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  // A column that says nothing is no column.
  std::erase_if(columns, [](const Column& c) {
    return std::ranges::all_of(c.cells, [](const std::string& cell) { return cell == "-"; });
  });
  return columns;
}

std::string Pad(const std::string& text, size_t width, bool right) {
  const size_t have = static_cast<size_t>(DisplayWidth(text));
  const std::string space(width > have ? width - have : 0, ' ');
  return right ? space + text : text + space;
}

std::string Sparkline(const std::vector<double>& values) {
  static const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr size_t kPoints = 12;
  const size_t from = values.size() > kPoints ? values.size() - kPoints : 0;
  double least = INFINITY, most = -INFINITY;
  for (size_t i = from; i < values.size(); ++i) {
    least = std::min(least, values[i]);
    most = std::max(most, values[i]);
  }
  std::string out;
  for (size_t i = from; i < values.size(); ++i) {
    const double at = most > least ? (values[i] - least) / (most - least) : 0;
    out += kBars[std::clamp(static_cast<int>(at * 8), 0, 7)];
  }
  return out;
}

std::string Bar(double percent, bool unicode) {
  constexpr int kCells = 20;
  const int full = std::clamp(static_cast<int>(std::lround(percent / 100 * kCells)), 0, kCells);
  std::string out;
  for (int i = 0; i < kCells; ++i) out += i < full ? (unicode ? "█" : "#") : (unicode ? "·" : ".");
  return out;
}

std::vector<std::string> Parts(const LiveModel& model, bool unicode, bool bar) {
  std::vector<std::string> parts;
  if (model.percent) {
    std::string part = fmt::format("{:.0f}%", *model.percent);
    if (bar) part += " " + Bar(*model.percent, unicode);
    parts.push_back(part);
  }
  if (model.eta) parts.push_back("ETA " + base::FormatDuration(*model.eta));
  if (model.records_total > 0) {
    parts.push_back(fmt::format("records {}/{}", model.records_done, model.records_total));
  }
  parts.push_back(fmt::format("restarts {}", model.restarts));
  if (!model.note.empty()) parts.push_back(model.note);
  return parts;
}

}  // namespace

int DisplayWidth(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(text, StartsCharacter));
}

std::string Elide(const std::string& text, int width) {
  if (DisplayWidth(text) <= width) return text;
  std::string out;
  int columns = 0;
  for (char c : text) {
    if (StartsCharacter(c) && ++columns > width) break;
    out += c;
  }
  return out;
}

std::vector<std::string> RenderBlock(const LiveModel& model, int width, bool unicode) {
  std::vector<LiveRow> rows = model.rows;
  std::string more;
  if (rows.size() > kMostRows) {
    more = fmt::format("  and {} more", rows.size() - kMostRows);
    rows.resize(kMostRows);
  }
  std::vector<Column> columns = Columns(rows);
  const auto total = [&] {
    size_t sum = 0;
    for (const Column& c : columns) sum += c.Width() + 2;
    return static_cast<int>(sum);
  };
  while (columns.size() > 2 && total() > width) columns.pop_back();
  std::vector<std::string> lines;
  const auto add = [&](const auto& cell_of) {
    std::string line;
    for (const Column& c : columns) line += "  " + Pad(cell_of(c), c.Width(), c.right);
    lines.push_back(Elide(line, width));
  };
  add([](const Column& c) { return c.title; });
  for (size_t i = 0; i < rows.size(); ++i) {
    add([&](const Column& c) { return c.cells[i]; });
  }
  if (!more.empty()) lines.push_back(Elide(more, width));
  std::string foot = " ";
  if (unicode && model.losses.size() > 1) foot += " " + Sparkline(model.losses) + " loss ";
  for (const std::string& part : Parts(model, unicode, width >= 60)) foot += " " + part + "  ";
  lines.push_back(Elide(foot, width));
  for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

std::string RenderLine(const LiveModel& model, bool unicode) {
  std::vector<std::string> parts;
  for (const LiveRow& row : model.rows) {
    if (!row.step) continue;
    std::string part = fmt::format("{} step {}", row.name, *row.step);
    if (row.loss) part += fmt::format(" loss {:.4f}", *row.loss);
    parts.push_back(part);
    break;  // the leading one
  }
  for (const std::string& part : Parts(model, unicode, false)) parts.push_back(part);
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out += unicode ? " · " : " - ";
    out += part;
  }
  return out;
}

}  // namespace cli
