#include "serve/predict_json.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/core.h>

#include "base/base64.h"
#include "base/strings.h"
#include "serve/float_lists.h"
#include "serve/json_cursor.h"
#include "serve/json_number.h"

namespace serve {
namespace {

using tensor::Tensor;
using tensor::Type;

constexpr size_t kMostStrings = size_t{1} << 24;

template <typename Number>
void Put(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

template <typename Number>
bool ReadWhole(std::string_view text, std::string& out) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  Put(out, value);
  return true;
}

// Reads values of one input, one after the other or as one, and finds out its shape.
class Filler {
 public:
  Filler(const End& end, bool by_value)
      : end_(end), at_once_(!by_value && end.type == Type::kFloat) {
    tensor_.type = end.type;
  }

  // A value that is a row: `depth` is 1; or all there is: 0.
  Answer<> Add(JsonCursor& json, size_t depth) {
    if (Value(json, depth)) return {};
    return std::unexpected(
        Status{error_.code, fmt::format("input '{}': {}", base::OneLine(end_.name), error_.text)});
  }

  Tensor Take(std::optional<int64_t> rows) {
    tensor_.shape = std::move(shape_.sizes);
    if (rows) {
      if (tensor_.shape.empty()) tensor_.shape.push_back(0);
      tensor_.shape[0] = *rows;
    }
    return std::move(tensor_);
  }

 private:
  // False: error_ says why. (An Answer for each of very many values would cost more than to read
  // them.)
  bool Value(JsonCursor& json, size_t depth) {
    if (json.Peek() != '[') return Leaf(json, depth);
    if (depth >= kDeepestList) return Fail(json.Error("brackets too deep"));
    at_once_ = at_once_ && ReadFloatLists(json, depth, shape_, tensor_.bytes);
    if (at_once_) return true;
    json.Eat('[');
    int64_t count = 0;
    if (!json.Eat(']')) {
      do {
        if (!Value(json, depth + 1)) return false;
        ++count;
      } while (json.Eat(','));
      if (const auto closed = json.Expect(']'); !closed) return Fail(closed);
    }
    return Size(json, depth, count);
  }

  // All lists of one depth have one length, and all values lie at one depth.
  bool Size(JsonCursor& json, size_t depth, int64_t count) {
    auto& [sizes, rank] = shape_;
    if (rank && depth >= *rank) return Fail(json.Error("a list and a value in the same place"));
    if (sizes.size() <= depth) sizes.resize(depth + 1, -1);
    if (sizes[depth] != -1 && sizes[depth] != count)
      return Fail(
          json.Error(fmt::format("lists of {} and of {} in the same place", sizes[depth], count)));
    sizes[depth] = count;
    return true;
  }

  bool ValuesAt(JsonCursor& json, size_t depth) {
    if (!shape_.rank) shape_.rank = depth;
    if (*shape_.rank == depth && shape_.sizes.size() <= depth) return true;
    return Fail(json.Error("a list and a value in the same place"));
  }

  bool Leaf(JsonCursor& json, size_t depth) {
    if (!ValuesAt(json, depth)) return false;
    const Answer<> read = end_.type == Type::kString ? Text(json)
                          : end_.type == Type::kBool ? Flag(json)
                                                     : Number(json);
    return read || Fail(read);
  }

  bool Fail(const Answer<>& answer) {
    error_ = answer.error();
    return false;
  }

  Answer<> Flag(JsonCursor& json) {
    Put<uint8_t>(tensor_.bytes, TRY(json.Bool()));
    return {};
  }

  Answer<> Text(JsonCursor& json) {
    if (tensor_.strings.size() == kMostStrings) return json.Error("too many strings");
    if (!json.Eat('{')) {
      tensor_.strings.push_back(TRY(json.String()));
      return {};
    }
    if (TRY(json.String()) != "b64") return json.Error("a string or {\"b64\": …} expected");
    TRY(json.Expect(':'));
    auto bytes = base::DecodeBase64(TRY(json.String()));
    if (!bytes) return json.Error("not base64");
    TRY(json.Expect('}'));
    tensor_.strings.push_back(std::move(*bytes));
    return {};
  }

  Answer<> Number(JsonCursor& json) {
    const char next = json.Peek();
    if (next != '-' && next != 'N' && next != 'I' && (next < '0' || next > '9'))
      return json.Error(fmt::format("a number expected: {}", Describe(end_)));
    const std::string_view text = TRY(json.Number());
    if (!Store(text))
      return json.Error(
          fmt::format("{} is no {}", base::OneLine(text, 40), tensor::NameOf(end_.type)));
    return {};
  }

  bool Store(std::string_view text) {
    std::string& out = tensor_.bytes;
    float single = 0;
    double wide = 0;
    switch (end_.type) {
      case Type::kFloat:
        if (!ReadReal(text, single)) return false;
        Put(out, single);
        return true;
      case Type::kDouble:
        if (!ReadReal(text, wide)) return false;
        Put(out, wide);
        return true;
      case Type::kHalf:
        if (!ReadReal(text, single)) return false;
        Put(out, tensor::FloatToHalf(single));
        return true;
      case Type::kBfloat16:
        if (!ReadReal(text, single)) return false;
        Put(out, tensor::FloatToBfloat16(single));
        return true;
      case Type::kInt8:
        return ReadWhole<int8_t>(text, out);
      case Type::kInt16:
        return ReadWhole<int16_t>(text, out);
      case Type::kInt32:
        return ReadWhole<int32_t>(text, out);
      case Type::kInt64:
        return ReadWhole<int64_t>(text, out);
      case Type::kUint8:
        return ReadWhole<uint8_t>(text, out);
      case Type::kUint16:
        return ReadWhole<uint16_t>(text, out);
      case Type::kUint32:
        return ReadWhole<uint32_t>(text, out);
      case Type::kUint64:
        return ReadWhole<uint64_t>(text, out);
      default:
        return false;
    }
  }

  const End& end_;
  bool at_once_;  // as long as it works, which is to the end for nearly all
  Tensor tensor_;
  ListShape shape_;
  Status error_;
};

size_t IndexOf(const Signature& signature, std::string_view name) {
  return static_cast<size_t>(std::ranges::find(signature.inputs, name, &End::name) -
                             signature.inputs.begin());
}

std::unexpected<Status> Takes(const Signature& signature, const std::string& but) {
  return BadRequest(fmt::format("{}; signature '{}' takes {}", but, base::OneLine(signature.name),
                                Describe(signature.inputs)));
}

// {name: value, …}, each once; all of them.
Answer<> Named(JsonCursor& json, const Signature& signature, std::vector<Filler>& fillers,
               size_t depth) {
  std::vector<bool> given(fillers.size());
  TRY(json.Expect('{'));
  if (!json.Eat('}')) {
    do {
      const std::string name = TRY(json.String());
      const size_t i = IndexOf(signature, name);
      if (i == fillers.size())
        return Takes(signature, fmt::format("no input '{}'", base::OneLine(name)));
      if (given[i])
        return BadRequest(fmt::format("input '{}' is there twice", base::OneLine(name)));
      TRY(json.Expect(':'));
      TRY(fillers[i].Add(json, depth));
      given[i] = true;
    } while (json.Eat(','));
    TRY(json.Expect('}'));
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i])
      return Takes(signature,
                   fmt::format("input '{}' is missing", base::OneLine(signature.inputs[i].name)));
  }
  return {};
}

// Whether an object names inputs, or is a string in base64.
bool NamesInputs(JsonCursor json, const Signature& signature) {
  if (!json.Eat('{')) return false;
  if (signature.inputs.size() != 1 || signature.inputs[0].type != Type::kString) return true;
  const auto first = json.String();
  return !first || *first != "b64" || signature.inputs[0].name == "b64";
}

Answer<> OneValue(JsonCursor& json, const Signature& signature, std::vector<Filler>& fillers,
                  size_t depth) {
  if (NamesInputs(json, signature)) return Named(json, signature, fillers, depth);
  if (fillers.size() != 1)
    return Takes(signature, "a value without a name, where each input needs one");
  return fillers[0].Add(json, depth);
}

Answer<std::vector<Tensor>> Read(const PredictBody& body, const Signature& signature,
                                 bool by_value) {
  std::vector<Filler> fillers;
  for (const End& end : signature.inputs) fillers.emplace_back(end, by_value);
  JsonCursor json(body.value);
  std::optional<int64_t> rows;
  if (body.rows) {
    rows = 0;
    if (!json.Eat('[')) return BadRequest("'instances' must be a list of rows");
    if (json.Peek() == ']') return BadRequest("'instances' has no rows");
    do {
      TRY(OneValue(json, signature, fillers, 1));
      ++*rows;
    } while (json.Eat(','));
    TRY(json.Expect(']'));
  } else {
    TRY(OneValue(json, signature, fillers, 0));
  }
  if (!json.AtEnd()) return json.Error("more behind its end");
  std::vector<Tensor> out;
  for (Filler& filler : fillers) out.push_back(filler.Take(rows));
  return out;
}

}  // namespace

std::optional<PredictBody> GuessPredictBody(std::string_view body) {
  JsonCursor json(body);
  PredictBody out;
  if (!json.Eat('{')) return std::nullopt;
  do {
    const auto key = json.String();
    if (!key || !json.Eat(':')) return std::nullopt;
    if (*key == "instances" || *key == "inputs") {
      const std::string_view rest = json.rest();
      const size_t end = rest.find_last_not_of(" \n\t\r");
      if (end == std::string_view::npos || rest[end] != '}') return std::nullopt;
      out.rows = *key == "instances";
      out.value = rest.substr(0, end);
      return out;
    }
    auto name = json.String();
    if (*key != "signature_name" || !name) return std::nullopt;
    out.signature_name = std::move(*name);
  } while (json.Eat(','));
  return std::nullopt;
}

Answer<PredictBody> ReadPredictBody(std::string_view body) {
  JsonCursor json(body);
  PredictBody out;
  std::set<std::string> given;
  TRY(json.Expect('{'));
  if (!json.Eat('}')) {
    do {
      const std::string key = TRY(json.String());
      TRY(json.Expect(':'));
      if (key == "signature_name") {
        out.signature_name = TRY(json.String());
      } else if (key == "instances" || key == "inputs") {
        out.rows = key == "instances";
        out.value = TRY(json.Skip());
        given.insert(key);
      } else {
        TRY(json.Skip());
      }
    } while (json.Eat(','));
    TRY(json.Expect('}'));
  }
  if (!json.AtEnd()) return json.Error("more behind its end");
  if (given.size() > 1) return BadRequest("both 'instances' and 'inputs': one of them, please");
  if (given.empty()) return BadRequest("neither 'instances' nor 'inputs' in the request");
  return out;
}

Answer<std::vector<Tensor>> ReadInputs(const PredictBody& body, const Signature& signature) {
  return Read(body, signature, false);
}

Answer<std::vector<Tensor>> ReadInputsByValue(const PredictBody& body, const Signature& signature) {
  return Read(body, signature, true);
}

}  // namespace serve
