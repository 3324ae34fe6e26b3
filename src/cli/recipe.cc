#include "cli/recipe.h"

#include <fmt/core.h>

#include "base/json.h"
#include "cli/bundle.h"

namespace cli {
namespace {

// Words as Dockerfiles have them when no shell is to read them.
std::string Exec(const std::vector<std::string>& words) {
  base::JsonArray out;
  for (const std::string& word : words) out.emplace_back(word);
  return base::CompactJson(out);
}

}  // namespace

std::string Dockerfile(const Recipe& recipe) {
  std::string out = fmt::format("FROM {}\n", recipe.base);
  if (recipe.requirements) {
    // By themselves, and before the code: a change of the code does not install them again.
    out += "COPY requirements.txt /trainyard/requirements.txt\n";
    out += fmt::format("RUN {}\n", Exec({"python3", "-m", "pip", "install", "--no-cache-dir", "-r",
                                         "/trainyard/requirements.txt"}));
  }
  out += fmt::format("COPY --chown=1000:1000 . {}\n", kCodeMount);
  out += fmt::format("WORKDIR {}\n", kCodeMount);
  // The user has no entry in /etc/passwd, so nothing else says where it may write.
  out += "ENV HOME=/tmp PYTHONUNBUFFERED=1\n";
  out += "USER 1000:1000\n";
  out += fmt::format("ENTRYPOINT {}\n",
                     Exec({"python3", fmt::format("{}/{}", kCodeMount, recipe.script)}));
  return out;
}

base::Result<> CheckImageName(const std::string& flag, const std::string& name) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  const bool good = !name.empty() && kLetters.find(name.front()) != std::string_view::npos &&
                    name.find_first_not_of(std::string(kLetters) + "._-/:@") == std::string::npos;
  if (good) return {};
  return base::Invalid(fmt::format(
      "{}: must be an image's name, like registry.example/team/mnist:1, not '{}'", flag, name));
}

}  // namespace cli
