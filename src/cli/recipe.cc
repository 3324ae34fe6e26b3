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

std::string ZooDockerfile(const ZooRecipe& recipe) {
  std::string out = fmt::format("{}FROM {}\n", kZooMark, recipe.base);
  const auto copy = [&](const std::string& from, const std::string& to) {
    out += fmt::format("COPY {}\n", Exec({from, to}));
  };
  const auto install = [&](const std::vector<std::string>& what) {
    std::vector<std::string> words = {"python3", "-m", "pip", "install", "--no-cache-dir"};
    if (!recipe.index.empty()) words.push_back("--extra-index-url=" + recipe.index);
    words.insert(words.end(), what.begin(), what.end());
    out += fmt::format("RUN {}\n", Exec(words));
  };
  std::vector<std::string> packages;
  for (const std::string& wheel : recipe.wheels) {
    packages.push_back("/wheels/" + wheel.substr(wheel.rfind('/') + 1));
    copy(wheel, packages.back());
  }
  // The published client imports packaging and grpcio and does not ask for them.
  const bool published = packages.empty();
  if (published) packages = {"elasticai_api", "packaging", "grpcio"};
  if (recipe.python) install(packages);
  if (recipe.python && recipe.requirements) {
    copy(recipe.model_zoo + "/requirements.txt", "/model_zoo/requirements.txt");
    install({"-r", "/model_zoo/requirements.txt"});
  }
  // If anything is still missing, such as a protobuf that fits, the build fails and names it.
  if (recipe.python && published)
    out += fmt::format("RUN {}\n",
                       Exec({"python3", "-c", "import elasticai_api.common.data_shard_service"}));
  copy(recipe.model_zoo, "/model_zoo");
  if (!recipe.cluster_spec.empty()) {
    copy(recipe.cluster_spec,
         "/cluster_spec/" + recipe.cluster_spec.substr(recipe.cluster_spec.rfind('/') + 1));
  }
  if (recipe.python) out += "ENV PYTHONPATH=/ PYTHONUNBUFFERED=1\n";
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
