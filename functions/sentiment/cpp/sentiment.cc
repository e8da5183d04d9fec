// How TextBlob scores: every word of the lexicon is an assessment with a polarity, a subjectivity and an intensity. An
// adverb waits for the next known word and scales it; a negation before a known word halves and turns its polarity; "!"
// makes the word before it stronger; emoticons and "(!)" are assessments of their own. The text has the mean of them.
#include "sentiment.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "tokens.h"

namespace orla::functions {

namespace {

struct Word {
  std::string_view text;
  double polarity;
  double subjectivity;
  double intensity;
  bool adverb;
};
constexpr Word kLexicon[] = {
#include "../lexicon/lexicon.inc"
};

const Word* find_word(std::string_view text) {
  const Word* found = std::lower_bound(std::begin(kLexicon), std::end(kLexicon), text,
                                       [](const Word& word, std::string_view t) { return word.text < t; });
  return found != std::end(kLexicon) && found->text == text ? found : nullptr;
}

bool valid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const std::size_t length = first < 0x80   ? 1
                               : first < 0xC2 ? 0
                               : first < 0xE0 ? 2
                               : first < 0xF0 ? 3
                               : first < 0xF5 ? 4
                                              : 0;
    if (length == 0 || i + length > text.size()) return false;
    std::uint32_t code = length == 1 ? first : first & (0x7Fu >> length);
    for (std::size_t k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      code = (code << 6) | (next & 0x3Fu);
    }
    if ((length == 3 && (code < 0x800 || (code >= 0xD800 && code < 0xE000))) ||
        (length == 4 && (code < 0x10000 || code > 0x10FFFF))) {
      return false;
    }
    i += length;
  }
  return true;
}

// The lexicon is ASCII, so of the other letters only two matter: the Kelvin sign, whose lower case is k, and the
// capital dotted I, whose lower case is two characters.
void lower(std::string_view text, std::string& out) {
  out.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] >= 'A' && text[i] <= 'Z') {
      out += static_cast<char>(text[i] - 'A' + 'a');
    } else if (text.substr(i, 3) == "\u212A") {
      out += 'k';
      i += 2;
    } else if (text.substr(i, 2) == "\u0130") {
      out += "i\u0307";
      i += 1;
    } else {
      out += text[i];
    }
  }
}

// Characters, not bytes.
std::size_t length(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string_view without_quotes(std::string_view text) {
  while (!text.empty() && text.front() == '\'') text.remove_prefix(1);
  while (!text.empty() && text.back() == '\'') text.remove_suffix(1);
  return text;
}

bool is_negation(std::string_view text) { return text == "no" || text == "not" || text == "never"; }

bool ends_with_ly(std::string_view text) { return text.size() >= 2 && text.substr(text.size() - 2) == "ly"; }

double clamp(double value) { return std::max(-1.0, std::min(value, 1.0)); }

// "XD" is all letters, and those are never looked up.
std::optional<double> polarity_of_emoticon(std::string_view text) {
  std::optional<double> found;
  if (text.empty() || text.size() > 8 || text == "xd" || !begins_emoticon(text.front())) return found;
  std::string lowered;
  find_emoticon([&](std::string_view emoticon, double polarity) {
    lower(emoticon, lowered);
    if (lowered == text) found = polarity;
    return found.has_value();
  });
  return found;
}

class Scores {
 public:
  void add(std::string_view token) {
    if (const Word* word = find_word(token)) {
      known(*word);
    } else {
      unknown(token);
    }
  }

  Sentiment mean() const {
    Sentiment sum;
    for (const Assessment& a : assessments_) {
      sum.polarity += a.negated ? a.polarity * -0.5 : a.polarity;
      sum.subjectivity += a.subjectivity;
    }
    const double count = assessments_.empty() ? 1 : static_cast<double>(assessments_.size());
    return {sum.polarity / count, sum.subjectivity / count};
  }

 private:
  struct Assessment {
    double polarity;
    double subjectivity;
    double intensity = 1;
    bool negated = false;
  };

  void known(const Word& word) {
    if (adverb_ == nullptr) {
      assessments_.push_back({word.polarity, word.subjectivity, word.intensity});
    } else {
      Assessment& last = assessments_.back();
      last.polarity = clamp(word.polarity * last.intensity);
      last.subjectivity = clamp(word.subjectivity * last.intensity);
      last.intensity = word.intensity;
    }
    if (negation_) {
      assessments_.back().intensity = 1.0 / assessments_.back().intensity;
      assessments_.back().negated = true;
    }
    adverb_ = word.adverb ? &word : nullptr;
    negation_ = is_negation(word.text);
  }

  // Small words ("a", "is") keep what waits: "not a good", "really is a good".
  void unknown(std::string_view token) {
    if (is_negation(token)) {
      negation_ = true;
    } else if (negation_ && length(without_quotes(token)) > 1) {
      negation_ = false;
    }
    if (negation_ && adverb_ != nullptr && ends_with_ly(adverb_->text)) {  // "really not good"
      assessments_.back().negated = true;
      negation_ = false;
    } else if (adverb_ != nullptr && length(token) > 2) {
      adverb_ = nullptr;
    }
    if (token == "!" && !assessments_.empty()) {
      assessments_.back().polarity = clamp(assessments_.back().polarity * 1.25);
    }
    if (token == "(!)") assessments_.push_back({0.0, 1.0});
    if (const std::optional<double> polarity = polarity_of_emoticon(token)) assessments_.push_back({*polarity, 1.0});
  }

  std::vector<Assessment> assessments_;
  const Word* adverb_ = nullptr;  // the word before, when it scales the next; its assessment is the last one
  bool negation_ = false;         // a negation that waits for a known word
};

}  // namespace

std::optional<Sentiment> sentiment_of(std::string_view text) {
  if (!valid_utf8(text)) return std::nullopt;
  Scores scores;
  std::string lowered;
  for_each_token(text, [&](std::string_view token) {
    lower(token, lowered);
    scores.add(lowered);
  });
  return scores.mean();
}

}  // namespace orla::functions
