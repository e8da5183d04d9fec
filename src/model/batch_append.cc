#include "model/batch_append.h"

#include "model/power_of_ten.h"

namespace orla::model {

namespace {

// Whether runs of n and m samples, one after the other, are one evenly spaced run; then its step is `step`.
bool joins(const Batch::Pace& a, std::uint32_t n, const Batch::Pace& b, std::uint32_t m, Duration& step) {
  const Time last = a.start + a.step * std::int64_t{n - 1};
  std::int64_t gap = 0;
  if (__builtin_sub_overflow(to_ns(b.start), to_ns(last), &gap) || gap < 0) return false;
  step = Duration(gap);
  return (n == 1 || a.step == step) && (m == 1 || b.step == step);
}

}  // namespace

BatchForm form_of(const Batch& batch) {
  BatchForm form;
  form.times = batch.paces.empty() ? BatchForm::Times::kEach : BatchForm::Times::kPaces;
  form.values = batch.scaled.empty() ? BatchForm::Values::kDoubles : BatchForm::Values::kScaled;
  form.decimals = batch.scaled.empty() ? 0 : batch.decimals;
  return form;
}

BatchForm common(const BatchForm& a, const BatchForm& b) {
  BatchForm form = a;
  if (b.times == BatchForm::Times::kEach) form.times = b.times;
  if (a.values != b.values || a.decimals != b.decimals) {
    form.values = BatchForm::Values::kDoubles;
    form.decimals = 0;
  }
  return form;
}

void append(Batch& to, const BatchForm& form, SeriesId series, const Batch& from, std::size_t run, std::uint32_t begin,
            std::uint32_t end) {
  const std::size_t at = to.size();
  const std::uint32_t count = end - begin;
  bool joined = !to.runs.empty() && to.runs.back().series == series;
  to.decimals = form.decimals;
  Batch::Pace pace;
  if (!from.paces.empty()) {
    pace = {from.paces[run].start + from.paces[run].step * std::int64_t{begin - from.runs[run].begin},
            from.paces[run].step};
  }
  if (form.times == BatchForm::Times::kPaces) {
    Duration step{};
    if (joined && joins(to.paces.back(), to.runs.back().end - to.runs.back().begin, pace, count, step)) {
      to.paces.back().step = step;
    } else {
      joined = false;
      to.paces.push_back(pace);
    }
  } else if (from.paces.empty()) {
    to.times.insert(to.times.end(), from.times.begin() + begin, from.times.begin() + end);
  } else {
    for (std::uint32_t i = 0; i < count; ++i) to.times.push_back(pace.start + pace.step * std::int64_t{i});
  }
  if (form.values == BatchForm::Values::kScaled) {
    to.scaled.insert(to.scaled.end(), from.scaled.begin() + begin, from.scaled.begin() + end);
  } else if (from.scaled.empty()) {
    to.values.insert(to.values.end(), from.values.begin() + begin, from.values.begin() + end);
  } else {
    const double unit = power_of_ten(from.decimals);
    for (std::uint32_t i = begin; i < end; ++i) to.values.push_back(from.scaled[i] / unit);
  }
  if (joined) {
    to.runs.back().end += count;
  } else {
    to.runs.push_back({series, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + count)});
  }
}

}  // namespace orla::model
