#include "function/host_load.h"

#include <algorithm>

namespace orla::function {
namespace {

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

double LoadWindow::area_at(base::SteadyTime now) const { return area_ + calls_ * seconds(now - since_); }

void LoadWindow::change(base::SteadyTime now, std::uint32_t calls, std::uint32_t begun) {
  if (now > since_) {
    // What was before the first call is no load.
    if (calls_ > 0) area_ += calls_ * seconds(now - since_);
    since_ = now;
  }
  calls_ = calls;
  begun_ += begun;
}

void LoadWindow::mark(base::SteadyTime now) {
  if (!marks_.empty() && now - marks_.back().time < kStep) return;
  const Mark mark{.time = now, .area = area_at(now), .begun = begun_};
  // The newest one that is a whole window old is the window's beginning; those before it are not needed.
  const auto young =
      std::find_if(marks_.begin(), marks_.end(), [&](const Mark& m) { return now - m.time < kStableWindow; });
  if (young != marks_.begin()) marks_.erase(marks_.begin(), young - 1);
  const Mark old = marks_.empty() ? Mark{} : marks_.front();
  const bool whole = marks_.empty() || now - old.time >= kStableWindow;
  if (calls_ == 0 && whole && old.begun == mark.begun && old.area == mark.area) {
    std::vector<Mark>().swap(marks_);
    area_ = 0;
    begun_ = 0;
    return;
  }
  marks_.push_back(mark);
}

LoadMeans LoadWindow::means(base::SteadyTime now, std::chrono::nanoseconds window) const {
  Mark from;  // none that old: all there ever was lies within the window
  for (const Mark& mark : marks_) {
    if (now - mark.time < window) break;
    from = mark;
  }
  const double length = seconds(window);
  return {.calls = (area_at(now) - from.area) / length,
          .per_second = static_cast<double>(begun_ - from.begun) / length};
}

}  // namespace orla::function
