// How a command says no: one line, exit status 2, nothing changed.
#pragma once

#include <string>

#include <fmt/core.h>

#include "base/result.h"

namespace cli {

inline constexpr int kRefused = 2;

inline int Refuse(const std::string& text) {
  fmt::print(stderr, "trainyard: {}\n", text);
  return kRefused;
}

inline int Refuse(const base::Error& error) { return Refuse(error.text()); }

}  // namespace cli
