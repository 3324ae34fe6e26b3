// Command lines: words separated by line ends, the first names the command.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/strings.h"
#include "cli/args.h"
#include "cli/commands.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> words;
  for (std::string_view word : base::Split(text, '\n')) words.emplace_back(word);
  const std::string name = words.front();
  words.erase(words.begin());
  for (const cli::Command& command : cli::Commands()) {
    if (!name.empty() && command.name != name) continue;
    auto args = cli::Parse(command, words);
    if (args) {
      CHECK(args->operands().size() <= static_cast<size_t>(command.most_operands));
      CHECK(command.takes_rest || args->rest().empty());
      base::IgnoreError(args->Number("workers", 2, 1, 1000), "only that it returns matters");
    } else {
      CHECK(!args.error().text().empty());
      CHECK(args.error().kind() == base::ErrorKind::kInvalid);
    }
  }
  return 0;
}
