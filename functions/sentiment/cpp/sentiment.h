// Polarity and subjectivity of an English text, with the results of TextBlob's default analyzer.
//
// Plain C++ without exceptions: it is compiled to WebAssembly (handler.cc) and natively (its test).
#pragma once

#include <optional>
#include <string_view>

namespace orla::functions {

struct Sentiment {
  double polarity = 0;      // -1 (bad) to 1 (good)
  double subjectivity = 0;  // 0 (a fact) to 1 (an opinion)
};

// Nothing: the text is not UTF-8.
std::optional<Sentiment> sentiment_of(std::string_view text);

}  // namespace orla::functions
