// Two tolerances, relative to the largest value of the output:
//
// - Rows in the same places of a batch of the same size, beside other values: TensorFlow does the
//   same arithmetic in the same order, so the results are equal to the last bit. kSame leaves room
//   for a few units in the last place. This is what finds a weak influence of other rows.
// - Rows alone, in another place or in a batch of another size: TensorFlow may use another kernel,
//   which adds in another order. The error of a sum of n products grows with sqrt(n) * epsilon, and
//   layers amplify it; 1e-4 for float is what networks of some hundred layers stay below. A client
//   that batches by itself sees the same differences.
#include "serve/row_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <fmt/core.h>

#include "base/strings.h"

namespace serve {
namespace {

using tensor::Tensor;
using tensor::Type;
using Tensors = std::vector<Tensor>;

constexpr size_t kRows = 8;
constexpr int64_t kMostElements = int64_t{1} << 24;   // of an input with kRows rows
constexpr int64_t kSmallElements = int64_t{1} << 20;  // of one with the most rows

struct Tolerance {
  double same, other;
};

Tolerance ToleranceOf(Type type) {
  switch (type) {
    case Type::kHalf:
      return {1e-3, 1e-2};
    case Type::kBfloat16:
      return {8e-3, 6e-2};
    default:
      return {1e-6, 1e-4};
  }
}

// How inputs are drawn. Whole numbers are often indexes of a table, whose size is not known.
struct Draw {
  enum class Floats { kNormal, kUniform, kLarge } floats = Floats::kNormal;
  int64_t whole_limit = 1000;
  int64_t free_size = 16;  // of dimensions other than the first that may have any size
};

template <typename Number>
Number Load(const Tensor& from, size_t i) {
  Number out;
  memcpy(&out, from.bytes.data() + i * sizeof out, sizeof out);
  return out;
}

bool IsReal(Type type) {
  return type == Type::kFloat || type == Type::kDouble || type == Type::kHalf ||
         type == Type::kBfloat16;
}

double RealAt(const Tensor& from, size_t i) {
  switch (from.type) {
    case Type::kFloat:
      return Load<float>(from, i);
    case Type::kDouble:
      return Load<double>(from, i);
    case Type::kHalf:
      return tensor::HalfToFloat(Load<uint16_t>(from, i));
    default:
      return tensor::Bfloat16ToFloat(Load<uint16_t>(from, i));
  }
}

class Source {
 public:
  explicit Source(uint64_t seed) : random_(seed) {}

  void Append(Type type, const Draw& draw, std::string& out) {
    switch (type) {
      case Type::kFloat:
        return Put(static_cast<float>(Real(draw)), out);
      case Type::kDouble:
        return Put(Real(draw), out);
      case Type::kHalf:
        return Put(tensor::FloatToHalf(static_cast<float>(Real(draw))), out);
      case Type::kBfloat16:
        return Put(tensor::FloatToBfloat16(static_cast<float>(Real(draw))), out);
      case Type::kBool:
        return Put(static_cast<uint8_t>(random_() & 1), out);
      default: {
        // Little-endian: the low bytes of a number that fits are the number.
        const size_t size = tensor::SizeOf(type);
        const int64_t limit = size == 1 ? std::min<int64_t>(draw.whole_limit, 128) : draw.whole_limit;
        const uint64_t value = random_() % static_cast<uint64_t>(limit);
        out.append(reinterpret_cast<const char*>(&value), size);
      }
    }
  }

 private:
  template <typename Number>
  static void Put(Number number, std::string& out) {
    out.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  double Real(const Draw& draw) {
    switch (draw.floats) {
      case Draw::Floats::kNormal:
        return std::normal_distribution<>()(random_);
      case Draw::Floats::kUniform:
        return std::uniform_real_distribution<>()(random_);
      case Draw::Floats::kLarge:
        return 100 * std::normal_distribution<>()(random_);
    }
    return 0;
  }

  std::mt19937_64 random_;
};

Tensors Inputs(const Signature& signature, const Draw& draw, Source& source) {
  Tensors out;
  for (const End& end : signature.inputs) {
    Tensor input{.type = end.type, .shape = *end.shape};
    for (int64_t& size : input.shape) size = size < 0 ? draw.free_size : size;
    input.shape[0] = kRows;
    const int64_t elements = tensor::ElementsOf(input.shape).value_or(kMostElements + 1);
    if (elements > kMostElements) return {};
    for (int64_t i = 0; i < elements; ++i) source.Append(end.type, draw, input.bytes);
    out.push_back(std::move(input));
  }
  return out;
}

// The named rows, of one of two sets of inputs: those below kRows of the first, others of the second.
Tensors Rows(const Tensors& first, const Tensors& second, const std::vector<size_t>& rows) {
  Tensors out;
  for (size_t i = 0; i < first.size(); ++i) {
    Tensor input{.type = first[i].type, .shape = first[i].shape};
    input.shape[0] = static_cast<int64_t>(rows.size());
    const size_t bytes = first[i].bytes.size() / kRows;
    for (const size_t row : rows)
      input.bytes.append(row < kRows ? first[i].bytes : second[i].bytes, row % kRows * bytes, bytes);
    out.push_back(std::move(input));
  }
  return out;
}

// The largest finite value of a tensor.
double ScaleOf(const Tensor& of) {
  double out = 0;
  const size_t count = of.bytes.size() / tensor::SizeOf(of.type);
  for (size_t i = 0; i < count; ++i) {
    const double value = std::fabs(RealAt(of, i));
    if (std::isfinite(value)) out = std::max(out, value);
  }
  return out;
}

// Whether row `i` of `a` is row `k` of `b`.
bool SameRow(const Tensor& a, size_t i, const Tensor& b, size_t k, double tolerance) {
  const auto rows_a = static_cast<size_t>(a.shape[0]), rows_b = static_cast<size_t>(b.shape[0]);
  if (a.type == Type::kString) {
    const size_t width = a.strings.size() / rows_a;
    if (width != b.strings.size() / rows_b) return false;
    return std::equal(a.strings.begin() + static_cast<ptrdiff_t>(i * width),
                      a.strings.begin() + static_cast<ptrdiff_t>((i + 1) * width),
                      b.strings.begin() + static_cast<ptrdiff_t>(k * width));
  }
  const size_t bytes = a.bytes.size() / rows_a;
  if (bytes != b.bytes.size() / rows_b) return false;
  if (a.bytes.compare(i * bytes, bytes, b.bytes, k * bytes, bytes) == 0) return true;
  if (!IsReal(a.type)) return false;
  const double limit = tolerance * std::max(ScaleOf(a), ScaleOf(b));
  const size_t width = bytes / tensor::SizeOf(a.type);
  for (size_t j = 0; j < width; ++j) {
    const double one = RealAt(a, i * width + j), other = RealAt(b, k * width + j);
    if (one == other || (std::isnan(one) && std::isnan(other))) continue;
    if (!(std::fabs(one - other) <= limit)) return false;
  }
  return true;
}

class Check {
 public:
  Check(const Signature& signature, const RunOnce& run, Steady::time_point until)
      : signature_(signature), run_(run), until_(until) {}

  std::string Whole(int64_t most_rows) {
    const auto draw = FirstDraw();
    if (!draw) return draw.error().text;
    for (const auto floats : {Draw::Floats::kNormal, Draw::Floats::kUniform, Draw::Floats::kLarge}) {
      Draw with = *draw;
      with.floats = floats;
      const bool first = floats == Draw::Floats::kNormal;
      if (const auto checked = One(with, first, most_rows); !checked) return checked.error().text;
    }
    return varies_ ? "" : "its outputs do not depend on random inputs";
  }

 private:
  Answer<Tensors> Run(const std::vector<size_t>& rows) {
    if (Steady::now() > until_) return BadRequest("the check takes too long");
    auto outputs = run_(Rows(first_, second_, rows));
    if (!outputs)
      return BadRequest("random inputs do not run: " + base::OneLine(outputs.error().text, 200));
    for (const Tensor& output : *outputs) {
      if (output.shape.empty() || output.shape[0] != static_cast<int64_t>(rows.size()))
        return BadRequest("an output does not have a row for each row of the inputs");
    }
    return outputs;
  }

  // The first way to draw inputs that the model takes.
  Answer<Draw> FirstDraw() {
    Answer<Tensors> ran;
    for (const int64_t free_size : {16, 64}) {
      for (const int64_t limit : {1000, 10, 2}) {
        const Draw draw{.whole_limit = limit, .free_size = free_size};
        if (!Prepare(draw)) return BadRequest("its rows are too large to try");
        ran = Run(All());
        if (ran) return draw;
      }
    }
    return std::unexpected(ran.error());
  }

  bool Prepare(const Draw& draw) {
    Source source(4711 + static_cast<uint64_t>(draw.floats));
    first_ = Inputs(signature_, draw, source);
    second_ = Inputs(signature_, draw, source);
    return !first_.empty() && !second_.empty();
  }

  static std::vector<size_t> All() {
    std::vector<size_t> out;
    for (size_t i = 0; i < kRows; ++i) out.push_back(i);
    return out;
  }

  Answer<> One(const Draw& draw, bool first, int64_t most_rows) {
    CHECK(Prepare(draw));
    const Tensors together = TRY(Run(All()));
    for (const Tensor& output : together) {
      for (size_t i = 1; i < kRows; ++i)
        varies_ = varies_ || !SameRow(output, 0, output, i, ToleranceOf(output.type).other);
    }
    // Beside other rows: once the odd ones are others, once the even ones.
    for (const size_t kept : {0, 1}) {
      std::vector<size_t> rows = All();
      for (size_t i = 1 - kept; i < kRows; i += 2) rows[i] += kRows;
      TRY(Compare(together, rows, true));
    }
    // In another order: no row stays in its place.
    std::vector<size_t> rows = All();
    std::ranges::reverse(rows);
    TRY(Compare(together, rows, false));
    // Alone, and in batches of other sizes.
    for (size_t i = 0; i < kRows; i += first ? 1 : kRows - 1) TRY(Compare(together, {i}, false));
    if (!first) return {};
    std::vector<int64_t> sizes = {2, 3, 5};
    if (tensor::ElementsOf(first_[0].shape).value_or(0) / static_cast<int64_t>(kRows) * most_rows <=
        kSmallElements)
      sizes.insert(sizes.end(), {33, most_rows});
    for (const int64_t size : sizes) {
      if (size > most_rows) continue;
      rows.clear();
      for (int64_t i = 0; i < size; ++i) rows.push_back(static_cast<size_t>(i) % kRows);
      TRY(Compare(together, rows, false));
    }
    return {};
  }

  // Runs these rows and compares those of the first set with what came out when all ran together.
  Answer<> Compare(const Tensors& together, const std::vector<size_t>& rows, bool same) {
    const Tensors outputs = TRY(Run(rows));
    for (size_t k = 0; k < outputs.size(); ++k) {
      const Tolerance tolerance = ToleranceOf(outputs[k].type);
      for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i] < kRows && !SameRow(together[k], rows[i], outputs[k], i,
                                        same ? tolerance.same : tolerance.other))
          return BadRequest(fmt::format("output '{}' of a row depends on the rows beside it",
                                        base::OneLine(signature_.outputs[k].name)));
      }
    }
    return {};
  }

  const Signature& signature_;
  const RunOnce& run_;
  const Steady::time_point until_;
  Tensors first_, second_;
  bool varies_ = false;
};

}  // namespace

std::string WhyNotRowWise(const Signature& signature, int64_t rows, const RunOnce& run,
                          Steady::time_point until) {
  if (std::ranges::any_of(signature.inputs,
                          [](const End& end) { return end.type == Type::kString; }))
    return "it takes strings, which cannot be drawn at random";
  return Check(signature, run, until).Whole(rows);
}

}  // namespace serve
