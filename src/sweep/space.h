// What a sweep searches: parameters, the values they may take, and how people write them.
//
//   lr=1e-4..1e-1          a number in between; log:1e-4..1e-1 evenly over the magnitudes
//   units=16..256          a whole number, both ends included (int: says so, float: says
//   otherwise);
//                          log:16..256 as above
//   layers=1,2,3           one of these; numbers in rising or falling order count as ordered
//   optimizer=adam,sgd     one of these
//   momentum=0.0..0.99 when optimizer=sgd
//                          exists only in trials in which the optimizer is sgd; further conditions
//                          follow "and", further values a comma
//
// A value is kept as one number: itself, or for a choice its place among the choices. Searchers
// see every parameter as the interval [0, 1]. A parameter that does not exist in a trial is
// inactive there: its value is kInactive, in points and in units.
//
// Values only; any thread.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace sweep {

inline constexpr size_t kMostParameters = 64;
inline constexpr size_t kMostChoices = 1000;
inline constexpr size_t kMostText = 200;  // bytes of a choice, or of a name

enum class Kind { kFloat, kInt, kChoice };

// No value and no unit is infinite, and it compares equal to itself.
inline constexpr double kInactive = -std::numeric_limits<double>::infinity();

// Holds in trials in which the parameter of that name is active and has one of the values.
struct Condition {
  std::string parent;
  std::vector<std::string> values;

  bool operator==(const Condition&) const = default;
};

struct Parameter {
  std::string name;
  Kind kind = Kind::kFloat;
  double low = 0;  // of numbers: both ends are included
  double high = 0;
  bool log = false;
  std::vector<std::string> choices;
  bool ordered = false;         // choices that are numbers in order
  std::vector<Condition> when;  // active where all of them hold

  bool operator==(const Parameter&) const = default;
};

using Space = std::vector<Parameter>;
using Point = std::vector<double>;  // a value for each parameter of a space, in its order

// "NAME=VALUES" or "NAME=VALUES when CONDITIONS" as above.
base::Result<Parameter> ParseParameter(std::string_view text);
// The part between '=' and " when ".
base::Result<Parameter> ParseValues(const std::string& name, std::string_view values);
// A choice of these texts.
base::Result<Parameter> ChoiceOf(const std::string& name, std::vector<std::string> choices);
// Checks the parameters together: names and variables are unique; conditions name other parameters
// and values that those can have, and form no cycle.
base::Result<> CheckSpace(const Space& space);
// Checks the conditions of one parameter.
base::Result<> CheckConditions(const Space& space, size_t index);

// The same in the grammar above, for people and for files.
std::string Describe(const Parameter& parameter);
std::string DescribeConditions(const Parameter& parameter);  // "optimizer=sgd and layers=2,3"

bool IsConditional(const Space& space);
// Whether a parameter exists beside the values of those that its conditions name, each of which is
// right, or kInactive. The space was checked.
bool IsActive(const Space& space, size_t index, const Point& point);
// Sets to kInactive what does not exist beside the other values.
void DeactivateUnits(const Space& space, std::vector<double>& units);
// The parameters in an order in which those that a condition names come before it.
std::vector<size_t> ParentsFirst(const Space& space);

// How many values there are; 0: any number of them.
size_t Cells(const Parameter& parameter);
// The length of the part of [0, 1] that means the same value as `unit`; 0 where any number can be.
double CellWidth(const Parameter& parameter, double unit);
double ToUnit(const Parameter& parameter, double value);
// The nearest value that there is. Numbers that are not whole have six digits: enough for any
// training, and short enough for the name of a directory.
double FromUnit(const Parameter& parameter, double unit);

std::string Text(const Parameter& parameter, double value);
// The value that a text means, or an error that says what would be one.
base::Result<double> ValueFrom(const Parameter& parameter, std::string_view text);

// The names and texts of the parameters that are active, in their order.
std::vector<std::pair<const Parameter*, std::string>> Texts(const Space& space, const Point& point);

// {"lr": 0.01, "optimizer": "adam"}: numbers as numbers; only what is active.
base::JsonObject ToJson(const Space& space, const Point& point);

// "lr" -> "TRAINYARD_PARAM_LR", "batch-size" -> "TRAINYARD_PARAM_BATCH_SIZE"
std::string VariableOf(const Parameter& parameter);

}  // namespace sweep
