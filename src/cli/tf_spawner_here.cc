// `tf-spawner` with TRAINYARD_ON=local: the same job as processes of this machine, handed over to
// `run` and `delete`.
#include <algorithm>
#include <cerrno>

#include <fmt/core.h>
#include <sys/mman.h>

#include "cli/commands.h"
#include "cli/local_jobs.h"
#include "cli/refuse.h"
#include "cli/tf_spawner.h"
#include "cli/tf_spawner_command.h"
#include "io/files.h"

namespace cli {
namespace {

using base::Invalid;
using base::Result;

int HandOver(std::string_view name, const std::vector<std::string>& words) {
  const auto command = std::ranges::find(Commands(), name, &Command::name);
  CHECK(command != Commands().end());
  auto args = Parse(*command, words);
  return args ? command->run(*args) : Refuse(args.error());
}

// What the two have in common.
std::vector<std::string> CommonWords(const Args& args) {
  std::vector<std::string> words = {"--on=local"};
  if (args.Has("namespace")) words.push_back("--namespace=" + args.Get("namespace"));
  if (args.json()) words.push_back("--json");
  return words;
}

// A command calls the script by the path that it has in a pod: here it is the user's own file. Put
// into the text of a shell script, that must not mean anything to a shell.
Result<std::string> CommandHere(std::string text, const std::string& script) {
  constexpr std::string_view kPlain = "/._-+=:,@%";
  const bool plain = std::ranges::all_of(script, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kPlain.find(c) != std::string_view::npos;
  });
  for (size_t at = 0; (at = text.find(kScriptInPod, at)) != std::string::npos;) {
    if (!plain) {
      return Invalid(fmt::format(
          "--command: {} has characters in its path that mean something to a shell: move it",
          script));
    }
    text.replace(at, kScriptInPod.size(), script);
    at += script.size();
  }
  return text;
}

// A file without a name, which needs no clearing away; `run` keeps a copy of what is in it.
Result<io::Fd> Unnamed(const std::string& text) {
  io::Fd file(memfd_create("command", MFD_CLOEXEC));
  if (!file.valid()) return base::FromErrno("memfd_create", errno);
  TRY(io::WriteFile(fmt::format("/proc/self/fd/{}", file.get()), text));
  return file;
}

Result<io::Fd> CommandFile(const Args& args) {
  const std::string text = TRY_AS("--command", io::ReadFile(args.Get("command"), 1 << 20));
  return Unnamed(TRY(CommandHere(text, io::AbsolutePath(args.operand(0)))));
}

}  // namespace

int SpawnHere(const Args& args, const std::string& tag) {
  // As there: it returns at once unless told to wait, and nothing is started twice.
  std::vector<std::string> words = CommonWords(args);
  words.push_back("--restart=Never");
  if (!args.Has("wait")) words.push_back("--detach");
  words.push_back("--name=" + tag);
  for (std::string flag : {"workers", "port", "env-file"}) {
    if (args.Has(flag)) words.push_back(fmt::format("--{}={}", flag, args.Get(flag)));
  }
  Result<io::Fd> command;
  if (args.Has("command")) {
    command = CommandFile(args);
    if (!command) return Refuse(command.error());
    words.push_back(fmt::format("--command=/proc/self/fd/{}", command->get()));
  }
  for (const char* flag : {"image", "pod-file"}) {
    if (args.Has(flag))
      fmt::print(stderr, "trainyard: warning: --{} has no effect on this machine\n", flag);
  }
  words.push_back(args.operand(0));
  const int status = HandOver("run", words);
  if (status == 0 && !args.json()) fmt::print("generated with label {}\n", SelectorOf(tag));
  return status;
}

int DeleteSpawnedHere(const Args& args, const std::string& tag) {
  if (auto found = FindLocalJob(args.name_space(), tag); !found) return Refuse(found.error());
  if (!IsConfirmed(args, tag)) return Refuse("nothing was deleted");
  std::vector<std::string> words = CommonWords(args);
  for (std::string word : {std::string("--force"), tag}) words.push_back(word);
  return HandOver("delete", words);
}

}  // namespace cli
