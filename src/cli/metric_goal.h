// The direction in which a metric improves, known from its name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cli {

enum class Goal { kMin, kMax };

// Compares whole words, so that giou_loss is a loss and val_mean_io_u an IoU. The last word with a
// known direction decides: in English it is the one that the others describe. Returns nothing for a
// name without such a word, and for a negated one (neg_mean_squared_error): the user must say.
std::optional<Goal> GoalOf(std::string_view metric);

}  // namespace cli
