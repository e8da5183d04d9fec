#include "function/log_lines.h"

#include <algorithm>

namespace orla::function {

LogLines::LogLines(LogSink* sink, std::string_view instance, std::string_view call_id, const FunctionOptions& options,
                   std::string_view stream)
    : sink_(sink), instance_(instance), most_(kMaxLogLineBytes) {
  if (options.log_buffer_bytes >= 0) most_ = std::min(most_, static_cast<std::size_t>(options.log_buffer_bytes));
  if (options.prefix_logs && !stream.empty()) {
    prefix_ += stream;
    prefix_ += ": ";
  }
  if (options.log_call_id && !call_id.empty()) {
    prefix_ += '[';
    prefix_ += call_id;
    prefix_ += "] ";
  }
  // What is said around a line counts too: a longer one would be cut a second time where it is kept.
  most_ = std::min(most_, kMaxLogLineBytes - std::min(kMaxLogLineBytes, prefix_.size() + kLogLineCut.size()));
}

void LogLines::write(std::string_view piece) {
  if (sink_ == nullptr) return;
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    const std::string_view part = piece.substr(0, end);
    any_ = true;
    const std::size_t room = most_ - std::min(most_, line_.size());
    line_.append(part.substr(0, room));
    cut_ = cut_ || part.size() > room;
    if (end == std::string_view::npos) return;
    emit();
    piece.remove_prefix(end + 1);
  }
}

void LogLines::end() {
  if (any_) emit();
}

void LogLines::emit() {
  if (!cut_ && !line_.empty() && line_.back() == '\r') line_.pop_back();
  std::string text = prefix_ + line_;
  if (cut_) text += kLogLineCut;
  sink_->line(instance_, text);
  line_.clear();
  any_ = false;
  cut_ = false;
}

}  // namespace orla::function
