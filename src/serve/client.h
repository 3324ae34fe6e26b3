// Asks a server about a picture, over gRPC: what `trainyard predict` becomes.
#pragma once

#include <string>

#include "base/json.h"

namespace serve {

struct Question {
  std::string host = "localhost";
  int64_t port = 8500;
  std::string image;  // a file
  int64_t index = 0;
  std::string model;
  std::string signature;  // empty: serving_default
  double scale = 1;
  std::string token_file;
  std::string ca_file;  // empty: no TLS
  bool json = false;
};

Question QuestionFromJson(const base::Json& json);

// Prints the answer; the exit status.
int AskOnce(const Question& question);

}  // namespace serve
