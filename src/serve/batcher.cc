#include "serve/batcher.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace serve {

bool Fit(const Pending& a, const Pending& b) {
  if (a.rows == 0 || b.rows == 0) return false;
  return std::ranges::equal(a.inputs, b.inputs,
                            [](const tensor::Tensor& one, const tensor::Tensor& other) {
                              return std::equal(one.shape.begin() + 1, one.shape.end(),
                                                other.shape.begin() + 1, other.shape.end());
                            });
}

bool Batcher::Add(Pending& request) {
  if (waiting_ >= limits_.waiting) return false;
  ++waiting_;
  queues_[request.signature->index].push_back(std::move(request));
  return true;
}

void Batcher::PutBack(std::vector<Pending> requests, bool alone) {
  for (auto each = requests.rbegin(); each != requests.rend(); ++each) {
    if (alone) each->rows = 0;
    ++waiting_;
    queues_[each->signature->index].push_front(std::move(*each));
  }
}

// How many at the front of a queue go together.
size_t Batcher::FitOf(const Queue& queue, int64_t& rows) const {
  rows = queue.front().rows;
  size_t count = 1;
  while (count < queue.size() && Fit(queue.front(), queue[count]) &&
         rows + queue[count].rows <= limits_.rows) {
    rows += queue[count++].rows;
  }
  return count;
}

std::optional<Status> WhyDropped(const Pending& request, Steady::time_point now) {
  if (request.caller.deadline && now >= *request.caller.deadline)
    return Status{Code::kDeadlineExceeded, "its time was over before the model was free"};
  if (request.caller.gone && request.caller.gone())
    return Status{Code::kCancelled, "the client has gone"};
  return std::nullopt;
}

std::vector<Pending> Batcher::Take(Steady::time_point now, std::vector<Pending>& dropped) {
  while (true) {
    std::vector<Pending> out = TakeNext(now);
    if (out.empty()) return out;
    std::erase_if(out, [&](Pending& each) {
      if (!WhyDropped(each, now)) return false;
      dropped.push_back(std::move(each));
      return true;
    });
    if (!out.empty()) return out;
  }
}

std::vector<Pending> Batcher::TakeDropped(Steady::time_point now) {
  std::vector<Pending> out;
  for (auto& [index, queue] : queues_) {
    waiting_ -= std::erase_if(queue, [&](Pending& each) {
      if (!WhyDropped(each, now)) return false;
      out.push_back(std::move(each));
      return true;
    });
  }
  return out;
}

std::vector<Pending> Batcher::TakeNext(Steady::time_point now) {
  look_again_.reset();
  Queue* oldest = nullptr;
  size_t count = 0;
  for (auto& [index, queue] : queues_) {
    if (queue.empty()) continue;
    int64_t rows = 0;
    const size_t fit = FitOf(queue, rows);
    const Steady::time_point until = queue.front().arrived + limits_.linger;
    const bool may_grow = queue.front().rows > 0 && fit == queue.size() && rows < limits_.rows;
    if (may_grow && now < until) {
      look_again_ = look_again_ ? std::min(*look_again_, until) : until;
    } else if (!oldest || queue.front().arrived < oldest->front().arrived) {
      oldest = &queue;
      count = fit;
    }
  }
  if (!oldest) return {};
  const auto end = oldest->begin() + static_cast<ptrdiff_t>(count);
  std::vector<Pending> out(std::make_move_iterator(oldest->begin()), std::make_move_iterator(end));
  oldest->erase(oldest->begin(), end);
  waiting_ -= count;
  return out;
}

std::vector<Pending> Batcher::TakeAll() {
  std::vector<Pending> out;
  for (auto& [index, queue] : queues_) {
    std::ranges::move(queue, std::back_inserter(out));
  }
  queues_.clear();
  waiting_ = 0;
  return out;
}

std::optional<std::vector<std::vector<tensor::Tensor>>> Share(
    const std::vector<tensor::Tensor>& outputs, const std::vector<int64_t>& rows) {
  const int64_t all = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  std::vector<std::vector<tensor::Tensor>> out(rows.size());
  for (const tensor::Tensor& output : outputs) {
    if (output.shape.empty() || output.shape.front() != all) return std::nullopt;
    const size_t row_bytes = output.bytes.size() / static_cast<size_t>(all);
    const size_t row_strings = output.strings.size() / static_cast<size_t>(all);
    size_t from = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto count = static_cast<size_t>(rows[i]);
      tensor::Tensor part{.type = output.type, .shape = output.shape};
      part.shape[0] = rows[i];
      part.bytes = output.bytes.substr(from * row_bytes, count * row_bytes);
      const auto first = output.strings.begin() + static_cast<ptrdiff_t>(from * row_strings);
      part.strings.assign(first, first + static_cast<ptrdiff_t>(count * row_strings));
      out[i].push_back(std::move(part));
      from += count;
    }
  }
  return out;
}

}  // namespace serve
