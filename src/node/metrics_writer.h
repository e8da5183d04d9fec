// Prometheus text format 0.0.4: each metric's HELP and TYPE once, before its first sample.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/series.h"

namespace orla::node {

class MetricsWriter {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    out_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  template <typename T>
  void sample(const std::vector<model::Label>& labels, T value) {
    sample_of("", labels, value);
  }
  // Of a summary or a histogram: "_sum", "_count", "_bucket".
  template <typename T>
  void sample_of(std::string_view suffix, const std::vector<model::Label>& labels, T value) {
    out_ += name_;
    out_ += suffix;
    if (!labels.empty()) {
      out_ += '{';
      for (std::size_t i = 0; i < labels.size(); ++i) {
        out_ += fmt::format("{}{}=\"{}\"", i == 0 ? "" : ",", labels[i].first, escape(labels[i].second));
      }
      out_ += '}';
    }
    out_ += fmt::format(" {}\n", value);
  }
  // A family of one sample without labels.
  template <typename T>
  void number(std::string_view name, std::string_view type, std::string_view help, T value) {
    family(name, type, help);
    sample({}, value);
  }
  std::string take() { return std::move(out_); }

 private:
  static std::string escape(const std::string& value) {
    std::string out;
    for (const char c : value) {
      if (c == '\\' || c == '"') out += '\\';
      if (c == '\n') {
        out += "\\n";
      } else {
        out += c;
      }
    }
    return out;
  }
  std::string name_;
  std::string out_;
};

}  // namespace orla::node
