// `predict`: asks a server, ours or TensorFlow Serving, about a picture.
// Becomes the program that has gRPC (server_main.cc).
#include <fmt/core.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/refuse.h"
#include "io/files.h"
#include "io/process.h"

namespace cli {
namespace {

base::Result<base::JsonObject> MakeQuestion(const Args& args) {
  for (const char* flag : {"image", "model"}) {
    if (!args.Has(flag)) return base::Invalid(fmt::format("--{} is missing", flag));
  }
  if (!io::Exists(args.Get("image")))
    return base::Invalid(fmt::format("--image {}: there is no such file", args.Get("image")));
  return base::JsonObject{{"host", args.Get("host", "localhost")},
                          {"port", TRY(args.Number("port", 8500, 1, 65535))},
                          {"image", args.Get("image")},
                          {"index", TRY(args.Number("index", 0, 0, INT32_MAX))},
                          {"model", args.Get("model")},
                          {"signature", args.Get("signature_name")},
                          {"scale", TRY(args.Number("scale", 1, 1, 65535))},
                          {"token_file", args.Get("token-file")},
                          {"ca_file", args.Get("ca-file")},
                          {"json", args.json()}};
}

}  // namespace

int PredictCommand(const Args& args) {
  const auto program = io::HelperProgram("trainyard-server");
  if (!program) return Refuse(program.error());
  const auto question = MakeQuestion(args);
  if (!question) return Refuse(question.error());
  const std::string text = base::CompactJson(base::JsonObject{{"predict", *question}});
  execl(program->c_str(), program->c_str(), text.c_str(), nullptr);
  return Refuse(base::FromErrno("start " + *program, errno).error());
}

}  // namespace cli
