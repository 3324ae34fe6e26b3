#include "cli/metric_goal.h"

#include <algorithm>
#include <array>
#include <vector>

namespace cli {
namespace {

constexpr auto kMinimized = std::to_array<std::string_view>(
    {"loss",    "losses", "error",   "errors",       "err",        "cost", "mse",   "rmse",
     "mae",     "mape",   "msle",    "rmsle",        "nll",        "kld",  "xent",  "logloss",
     "regret",  "ppl",    "hinge",   "crossentropy", "perplexity", "wer",  "cer",   "eer",
     "logcosh", "fid",    "divergence", "brier"});
constexpr auto kMaximized = std::to_array<std::string_view>(
    {"accuracy", "acc",    "auc",     "auroc",       "auprc",       "precision", "recall",
     "f1",       "fbeta",  "score",   "reward",      "rewards",     "return",    "returns",
     "bleu",     "rouge",  "iou",     "miou",        "giou",        "diou",      "ciou",
     "dice",     "ap",     "map",     "jaccard",     "ndcg",        "mrr",       "mcc",
     "kappa",    "r2",     "psnr",    "ssim",        "specificity", "sensitivity",
     "similarity"});
constexpr auto kNegations =
    std::to_array<std::string_view>({"neg", "negative", "minus", "inverse", "inv"});

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// "val/meanIoU_1" -> val, mean, io, u, 1
std::vector<std::string> WordsOf(std::string_view name) {
  std::vector<std::string> words(1);
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool letter = IsUpper(c) || IsLower(c) || IsDigit(c);
    // A capital begins a word after a small letter, and before one: "AUCLoss" -> auc, loss.
    const bool begins = IsUpper(c) && i > 0 &&
                        (!IsUpper(name[i - 1]) || (i + 1 < name.size() && IsLower(name[i + 1])));
    if ((!letter || begins) && !words.back().empty()) words.emplace_back();
    if (letter) words.back() += IsUpper(c) ? static_cast<char>(c - 'A' + 'a') : c;
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::optional<Goal> GoalOfWord(std::string_view word) {
  if (std::ranges::count(kMinimized, word)) return Goal::kMin;
  if (std::ranges::count(kMaximized, word)) return Goal::kMax;
  // A numbered output: "loss2".
  if (word.empty() || !IsDigit(word.back())) return std::nullopt;
  while (!word.empty() && IsDigit(word.back())) word.remove_suffix(1);
  return GoalOfWord(word);
}

}  // namespace

std::optional<Goal> GoalOf(std::string_view metric) {
  const std::vector<std::string> words = WordsOf(metric);
  for (const std::string& word : words) {
    if (std::ranges::count(kNegations, word)) return std::nullopt;
  }
  for (size_t i = words.size(); i-- > 0;) {
    if (const auto goal = GoalOfWord(words[i])) return goal;
    // Names that are also written as two words: io_u, cross_entropy, log_loss.
    if (i == 0) break;
    if (const auto goal = GoalOfWord(words[i - 1] + words[i])) return goal;
  }
  return std::nullopt;
}

}  // namespace cli
