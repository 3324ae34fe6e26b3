// Times the reading of predict requests: nanoseconds for each number, read at once and value by
// value.
//
//   predict_json_bench [MILLISECONDS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>

#include <fmt/core.h>

#include "serve/predict_json.h"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kRows = 32, kNumbers = 784;

// Each number of a row is in `lists` lists of its own.
std::string Body(const std::function<std::string(int)>& number, int lists,
                 const std::string& comma = ", ") {
  std::string out = "{\"instances\": [";
  for (int row = 0; row < kRows; ++row) {
    out += row ? comma + "[" : "[";
    for (int i = 0; i < kNumbers; ++i)
      out += (i ? comma : "") + std::string(static_cast<size_t>(lists), '[') + number(i) +
             std::string(static_cast<size_t>(lists), ']');
    out += "]";
  }
  return out + "]}";
}

// Of the quickest time.
template <typename Read>
double Nanoseconds(const Read& read, const std::string& body, double milliseconds) {
  static const serve::Signature signature{.name = "s",
                                          .inputs = {{.name = "x", .type = tensor::Type::kFloat}}};
  const auto begun = Clock::now();
  std::chrono::duration<double, std::nano> least = std::chrono::hours(1);
  for (auto from = begun, to = begun; (to - begun) / 1.0ms < milliseconds; from = to) {
    const auto inputs = read(*serve::GuessPredictBody(body), signature);
    if (!inputs || inputs->at(0).bytes.size() != sizeof(float) * kRows * kNumbers) exit(1);
    to = Clock::now();
    least = std::min<decltype(least)>(least, to - from);
  }
  return least.count() / (kRows * kNumbers);
}

}  // namespace

int main(int argc, char** argv) {
  const double milliseconds = argc > 1 ? atof(argv[1]) : 300;
  std::mt19937 random(1);
  const auto pixel = [&](int i) { return static_cast<float>(i % 256) / 256.0F; };
  const auto any = [&] { return static_cast<float>(random()) / 4294967296.0F; };
  const auto wide = [](float value) { return fmt::format("{}", static_cast<double>(value)); };
  const std::pair<const char*, std::string> bodies[] = {
      {"[0.0117188] as serve_load sends",
       Body([&](int i) { return fmt::format("{:g}", pixel(i)); }, 1)},
      {"0", Body([&](int) { return "0"; }, 0)},
      {"0.0", Body([&](int) { return "0.0"; }, 0)},
      {"0.5019608", Body([&](int) { return fmt::format("{:.7f}", any()); }, 0)},
      {"0.5019608 without spaces", Body([&](int) { return fmt::format("{:.7f}", any()); }, 0, ",")},
      {"0.501960813999176, Python's", Body([&](int) { return wide(any()); }, 0)},
      {"-1.2345678", Body([&](int) { return fmt::format("{:.7f}", 6 * any() - 3); }, 0)},
      {"1e-05", Body([&](int) { return "1e-05"; }, 0)},
      {"9.1e-06 and 0.5", Body([&](int i) { return i % 2 ? wide(any() / 1e5F) : "0.5"; }, 0)},
      {"[[[0.5019608]]]", Body([&](int) { return fmt::format("{:.7f}", any()); }, 3)},
  };
  fmt::print("{:<36} {:>8} {:>14}\n", "ns a number", "at once", "value by value");
  for (const auto& [name, body] : bodies)
    fmt::print("{:<36} {:8.1f} {:14.1f}\n", name,
               Nanoseconds(serve::ReadInputs, body, milliseconds),
               Nanoseconds(serve::ReadInputsByValue, body, milliseconds));
}
