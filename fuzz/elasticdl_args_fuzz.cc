// Command lines of ElasticDL: words separated by line ends, the first names the command. Whatever
// is taken for one gives a job or a refusal, and the job's objects.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/strings.h"
#include "cli/elasticdl_args.h"
#include "cli/elasticdl_job.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> words;
  for (std::string_view word : base::Split(text, '\n')) words.emplace_back(word);
  const std::string name = words.front();
  words.erase(words.begin());
  for (const cli::EdlCommand& command : cli::EdlCommands()) {
    if (command.name != name) continue;
    auto args = cli::ParseEdl(command, words);
    if (!args) {
      CHECK(args.error().kind() == base::ErrorKind::kInvalid && !args.error().text().empty());
      continue;
    }
    for (const cli::EdlOption& option : command.options) {
      const bool is = args->IsTrue(option.name);
      CHECK(option.kind != cli::EdlKind::kBool || is != (args->Get(option.name) == "false"));
    }
    if (args->help() || command.name != "train") continue;
    auto job = cli::MakeEdlJob(*args);
    CHECK(job ? cli::EdlObjects(*job).size() == 3 : !job.error().text().empty());
  }
  return 0;
}
