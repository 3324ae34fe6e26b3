#include "cli/sweep_store.h"

#include <algorithm>
#include <charconv>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/local/job_dir.h"
#include "base/crc32c.h"
#include "base/strings.h"
#include "io/clock.h"

namespace cli {
namespace {

using base::Invalid;
using base::Json;
using base::JsonObject;
using base::Result;
using sweep::Trial;

constexpr base::Duration kMoment = std::chrono::milliseconds(500);
constexpr int kBlinkMs = 10;

std::string Root(const std::string& name_space) {
  return backend::local::HomePath() + "/.sweeps/" + name_space;
}

// Numbers as text, exactly: infinities and not-a-number too.
std::string Exact(double value) { return fmt::format("{}", value); }

Result<double> FromExact(const Json& json) {
  double value = 0;
  if (!json.is_string()) return Invalid("no number");
  const std::string_view text = json.get_string();
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc())
    return Invalid("no number");
  return value;
}

JsonObject ValuesOf(const sweep::Space& space, const sweep::Point& point) {
  JsonObject values;
  for (const auto& [parameter, text] : sweep::Texts(space, point)) values[parameter->name] = text;
  return values;
}

Result<Trial> AskedFrom(const sweep::Space& space, const Json& record) {
  Trial trial{.number = static_cast<int>(base::IntOr(record, "ask", -1))};
  const Json& values = base::At(record, "values");
  for (const sweep::Parameter& parameter : space) {
    trial.point.push_back(
        base::Find(values, parameter.name)
            ? TRY(sweep::ValueFrom(parameter, base::StringOr(values, parameter.name)))
            : sweep::kInactive);
  }
  for (size_t i = 0; i < space.size(); ++i) {
    if (sweep::IsActive(space, i, trial.point) != (trial.point[i] != sweep::kInactive)) {
      return Invalid(fmt::format("trial {}: {} {}", trial.number, space[i].name,
                                 trial.point[i] == sweep::kInactive
                                     ? "has no value"
                                     : "has a value, which its condition forbids"));
    }
  }
  return trial;
}

Result<> Finish(Trial& trial, const Json& record) {
  const std::string state = base::StringOr(record, "state");
  for (sweep::State s : {sweep::State::kComplete, sweep::State::kPruned, sweep::State::kFailed}) {
    if (state == sweep::Name(s)) trial.state = s;
  }
  if (base::Find(record, "value")) trial.value = TRY(FromExact(base::At(record, "value")));
  trial.reports = base::IntOr(record, "reports");
  trial.reason = base::StringOr(record, "reason");
  if (const Json& rungs = base::At(record, "rungs"); rungs.is_object()) {
    for (const auto& [rung, value] : rungs.get_object()) {
      trial.rungs[base::ParseInt(rung).value_or(0)] = TRY(FromExact(value));
    }
  }
  return {};
}

// The whole lines of a log, and where the last of them ends.
struct Records {
  std::vector<Json> all;
  size_t good = 0;
};

Result<Records> RecordsIn(const std::string& text) {
  Records records;
  int number = 0;
  for (size_t end; (end = text.find('\n', records.good)) != text.npos; records.good = end + 1) {
    ++number;
    const std::string_view line = std::string_view(text).substr(records.good, end - records.good);
    const bool whole =
        line.size() > 9 && line.substr(0, 8) == fmt::format("{:08x}", base::Crc32c(line.substr(9)));
    auto record = whole ? base::ParseJson(line.substr(9)) : Invalid("");
    if (!record) {
      // Only the last line can have been cut by a crash.
      if (end + 1 == text.size()) break;
      return Invalid(fmt::format("trials.log: line {} is damaged", number));
    }
    records.all.push_back(*std::move(record));
  }
  return records;
}

std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == text.npos) return text;
  std::string out = "\"";
  for (char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

}  // namespace

Result<SweepStore> SweepStore::Create(SweepPlan plan, const std::string& base_name) {
  TRY(backend::local::Home());
  const std::string root = Root(plan.name_space);
  TRY(io::MakeDirs(root));
  const bool open_name = plan.name.empty();
  for (int n = 1;; ++n) {
    if (open_name) plan.name = fmt::format("{}-{}", base_name, n);
    const std::string path = root + "/" + plan.name;
    if (mkdir(path.c_str(), 0755) == 0) break;
    if (errno != EEXIST) return base::FromErrno("make directory " + path, errno);
    if (!open_name && io::Exists(path + "/deleted.json")) {
      return std::unexpected(base::Error(
          base::ErrorKind::kTaken,
          fmt::format("the output of a deleted sweep named {} is in {}: choose another --name, or "
                      "remove it: trainyard sweep delete --with-output {}",
                      plan.name, path, plan.name)));
    }
    if (!open_name) {
      return std::unexpected(base::Error(
          base::ErrorKind::kTaken,
          fmt::format(
              "there is a sweep named {}: choose another --name, or go on with it: trainyard "
              "sweep resume {}",
              plan.name, plan.name)));
    }
  }
  SweepStore store(root + "/" + plan.name, plan);
  auto written = [&]() -> Result<> {
    TRY(store.Take());
    if (!plan.env.empty()) TRY(io::WriteFile(store.File("env"), plan.env, 0600));
    TRY(io::WriteFile(store.File("trials.log"), ""));
    return io::ReplaceFileDurably(store.File("sweep.json"), base::IndentedJson(EncodePlan(plan)));
  }();
  if (!written) {
    store.Remove();
    return std::unexpected(written.error());
  }
  return store;
}

std::vector<std::string> SweepStore::List(const std::string& name_space) {
  std::vector<std::string> names;
  for (const std::string& name : io::ListDir(Root(name_space))) {
    if (io::Exists(Root(name_space) + "/" + name + "/sweep.json")) names.push_back(name);
  }
  return names;
}

Result<SweepStore> SweepStore::Open(const std::string& name_space, const std::string& wanted) {
  const std::vector<std::string> names = List(name_space);
  std::string name = wanted;
  if (name.empty()) {
    int64_t latest = -1;
    for (const std::string& candidate : names) {
      struct stat info{};
      if (stat((Root(name_space) + "/" + candidate + "/sweep.json").c_str(), &info) != 0) continue;
      const int64_t made = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec;
      if (made > latest) {
        latest = made;
        name = candidate;
      }
    }
  }
  if (!std::ranges::count(names, name)) {
    const auto nearest = base::Nearest(name, names);
    return std::unexpected(base::Error(
        base::ErrorKind::kNotFound,
        wanted.empty() ? "there are no sweeps yet: trainyard sweep SCRIPT --param lr=log:1e-4..1e-1"
                       : fmt::format("no sweep named {}{}", base::OneLine(wanted),
                                     nearest ? fmt::format(": did you mean {}?", *nearest)
                                             : ": see trainyard sweep ps")));
  }
  return Read(Root(name_space) + "/" + name, "sweep.json");
}

Result<SweepStore> SweepStore::OpenRemains(const std::string& name_space, const std::string& name) {
  if (name.empty() || name.contains('/') || name[0] == '.')
    return std::unexpected(base::Error(base::ErrorKind::kNotFound, "no such sweep"));
  return Read(Root(name_space) + "/" + name, "deleted.json");
}

Result<SweepStore> SweepStore::Read(const std::string& path, const std::string& file) {
  const std::string text = TRY(io::ReadFile(path + "/" + file));
  SweepPlan plan = TRY_AS(path + "/" + file, DecodePlan(TRY(base::ParseJson(text))));
  TRY_AS(path + "/" + file, sweep::CheckSettings(plan.settings));
  if (auto env = io::ReadFile(path + "/env")) plan.env = *env;
  return SweepStore(path, std::move(plan));
}

// A driver that was killed while it started a program leaves the lock to what it had forked, which
// lets go when it becomes that program: a moment.
Result<> SweepStore::Take() {
  auto lock = io::Lock::TryTake(File("lock"));
  for (const base::Time until = io::Now() + kMoment;
       !lock && lock.error().kind() == base::ErrorKind::kTaken && io::Now() < until;) {
    poll(nullptr, 0, kBlinkMs);
    lock = io::Lock::TryTake(File("lock"));
  }
  if (!lock && lock.error().kind() == base::ErrorKind::kTaken) {
    return std::unexpected(
        base::Error(base::ErrorKind::kTaken,
                    plan_.name + " is running already: trainyard sweep show " + plan_.name));
  }
  lock_ = TRY(std::move(lock));
  unlink(File("stop").c_str());  // meant for whoever had it before
  return {};
}

Result<> SweepStore::AskToStop(const std::string& by) { return io::WriteFile(File("stop"), by); }

Result<> SweepStore::TakeSoon() {
  lock_ = TRY(io::Lock::Wait(File("lock")));
  return {};
}

Result<sweep::Study> SweepStore::Load() {
  const std::string text = TRY(io::ReadFile(File("trials.log"), size_t{1} << 30));
  const Records records = TRY(RecordsIn(text));
  if (records.good < text.size() && lock_ &&
      truncate(File("trials.log").c_str(), static_cast<off_t>(records.good)) != 0) {
    return base::FromErrno("trials.log", errno);
  }
  std::vector<Trial> trials;
  for (const Json& record : records.all) {
    if (base::Find(record, "ask")) {
      Trial trial = TRY_AS("trials.log", AskedFrom(plan_.settings.space, record));
      if (trial.number != static_cast<int>(trials.size()))
        return Invalid("trials.log: trials are not in order");
      trials.push_back(std::move(trial));
    } else if (base::Find(record, "decided")) {
      const size_t number = static_cast<size_t>(base::IntOr(record, "decided", -1));
      if (number >= trials.size()) return Invalid("trials.log: no such trial");
      TRY_AS("trials.log", Finish(trials[number], record));
    }
  }
  sweep::Study study(plan_.settings, std::move(trials));
  for (const Json& record : records.all) {
    const bool report = base::Find(record, "report") != nullptr;
    if (!report && !base::Find(record, "end")) continue;
    const size_t number = static_cast<size_t>(base::IntOr(record, report ? "report" : "end", -1));
    if (number >= study.trials().size()) return Invalid("trials.log: no such trial");
    std::optional<double> value;
    if (base::Find(record, "value"))
      value = TRY_AS("trials.log", FromExact(base::At(record, "value")));
    if (report && value) study.Report(static_cast<int>(number), *value);
    if (!report) {
      study.End(static_cast<int>(number), {.failed = base::BoolOr(record, "failed"),
                                           .reason = base::StringOr(record, "reason"),
                                           .value = value});
    }
  }
  return study;
}

Result<> SweepStore::Append(const Json& record) {
  const std::string json = base::CompactJson(record);
  const std::string line = fmt::format("{:08x} {}\n", base::Crc32c(json), json);
  const io::Fd fd(open(File("trials.log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!fd.valid()) return base::FromErrno("trials.log", errno);
  if (write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
      fdatasync(fd.get()) != 0) {
    return base::FromErrno("write trials.log", errno ? errno : ENOSPC);
  }
  return {};
}

Result<> SweepStore::NoteAsked(const Trial& trial) {
  return Append(
      JsonObject{{"ask", trial.number}, {"values", ValuesOf(plan_.settings.space, trial.point)}});
}

Result<> SweepStore::NoteReport(int number, double value) {
  return Append(JsonObject{{"report", number}, {"value", Exact(value)}});
}

Result<> SweepStore::NoteEnding(int number, const sweep::Study::Ending& ending) {
  JsonObject record{{"end", number}, {"failed", ending.failed}, {"reason", ending.reason}};
  if (ending.value) record["value"] = Exact(*ending.value);
  return Append(record);
}

Result<> SweepStore::NoteDecided(const Trial& trial) {
  JsonObject rungs;
  for (const auto& [rung, value] : trial.rungs) rungs[std::to_string(rung)] = Exact(value);
  JsonObject record{{"decided", trial.number},
                    {"state", sweep::Name(trial.state)},
                    {"reports", trial.reports},
                    {"rungs", std::move(rungs)},
                    {"reason", base::CleanUtf8(trial.reason)}};
  if (trial.value) record["value"] = Exact(*trial.value);
  return Append(record);
}

Result<> SweepStore::NoteSource(const std::string& source) {
  return io::ReplaceFileDurably(File("metric"), source);
}

std::string SweepStore::Source() const { return io::ReadFile(File("metric")).value_or(""); }

std::optional<BestJob> BestJobOf(const std::string& name_space, const std::string& sweep) {
  if (sweep.empty()) return std::nullopt;
  auto store = SweepStore::Open(name_space, sweep);
  if (!store) return std::nullopt;
  const auto study = store->Load();
  const Trial* best = study ? study->Best() : nullptr;
  if (!best) return std::nullopt;
  return BestJob{store->plan().job_space, store->JobName(best->number)};
}

std::string Table(const sweep::Settings& settings, const std::vector<Trial>& trials) {
  std::string out = "trial,state,value,reports";
  for (const sweep::Parameter& p : settings.space) out += "," + p.name;
  out += ",reason\n";
  for (const Trial& trial : trials) {
    if (!sweep::IsOver(trial)) continue;
    out += fmt::format("{},{},{},{}", trial.number, sweep::Name(trial.state),
                       trial.value ? Exact(*trial.value) : "", trial.reports);
    for (size_t i = 0; i < settings.space.size(); ++i) {
      const bool active = trial.point[i] != sweep::kInactive;
      out += "," + (active ? Quoted(sweep::Text(settings.space[i], trial.point[i])) : "");
    }
    out += "," + Quoted(trial.reason) + "\n";
  }
  return out;
}

Result<> SweepStore::WriteTable(const std::vector<Trial>& trials) {
  return io::ReplaceFile(File("trials.csv"), Table(plan_.settings, trials));
}

std::string SweepStore::JobName(int number) const {
  return fmt::format("{}-t{}", plan_.name, number);
}

std::string SweepStore::TrialDir(const Trial& trial) const {
  std::vector<std::string> values;
  for (const auto& [parameter, text] : sweep::Texts(plan_.settings.space, trial.point))
    values.push_back(parameter->name + "=" + text);
  std::string name = fmt::format("{:03}-{}", trial.number, base::Join(values, ","));
  // Safe in any file system and on any command line.
  for (char& c : name) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      std::string_view("._=,+-").contains(c);
    if (!good) c = '_';
  }
  return File(name.substr(0, 150));
}

std::map<int, std::string> SweepStore::TrialDirs() const {
  std::map<int, std::string> out;
  for (const std::string& entry : io::ListDir(path_)) {
    const auto number = base::ParseInt(entry.substr(0, entry.find('-')));
    if (number && *number >= 0 && entry.contains('-')) out[static_cast<int>(*number)] = File(entry);
  }
  return out;
}

Result<std::vector<std::string>> SweepStore::RemoveTrial(const std::string& directory,
                                                         bool with_output, bool more_stays) {
  const std::string output = directory + "/output";
  const bool output_stays = !with_output && !io::ListDir(output).empty();
  if (!output_stays && !more_stays) {
    TRY(io::RemoveTree(directory));
    return std::vector<std::string>();
  }
  for (const std::string& entry : io::ListDir(directory)) {
    if (entry != "output" || !output_stays) TRY(io::RemoveTree(directory + "/" + entry));
  }
  return output_stays ? std::vector{output} : std::vector<std::string>();
}

Result<> SweepStore::RemoveRecords() {
  const auto trials = TrialDirs();
  if (trials.empty()) return io::RemoveTree(path_);
  if (io::Exists(File("sweep.json")) &&
      rename(File("sweep.json").c_str(), File("deleted.json").c_str()) != 0)
    return base::FromErrno("rename " + File("sweep.json"), errno);
  for (const std::string& entry : io::ListDir(path_)) {
    if (entry != "deleted.json" && !io::IsDirectory(File(entry))) TRY(io::RemoveTree(File(entry)));
  }
  return {};
}

void SweepStore::Remove() {
  base::IgnoreError(io::RemoveTree(path_), "the error that led here is the one to tell");
}

}  // namespace cli
