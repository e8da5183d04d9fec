#include "tokens.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

namespace orla::functions {

namespace {

struct Emoticon {
  std::string_view text;
  double polarity;
};
constexpr Emoticon kEmoticons[] = {
#include "../lexicon/emoticons.inc"
};

constexpr std::array<bool, 256> kEmoticonBegins = [] {
  std::array<bool, 256> begins{};
  for (const Emoticon& emoticon : kEmoticons) {
    const char first = emoticon.text[0];
    begins[static_cast<unsigned char>(first)] = true;
    if (first >= 'A' && first <= 'Z') begins[static_cast<unsigned char>(first - 'A' + 'a')] = true;
  }
  return begins;
}();

// Split off a word's beginning and end. A period is handled on its own: abbreviations keep it.
constexpr std::string_view kMarks = ",;:!?()[]{}`'\"@#$^&*+-|=~_";
constexpr std::string_view kEndOfParagraph = "END-OF-SENTENCE";  // written so by TextBlob, and then a token
constexpr std::string_view kAbbreviations[] = {
    "a.",   "adj.", "adv.",  "al.",  "a.m.",  "c.",    "cf.",  "comp.", "conf.", "def.", "ed.",  "e.g.", "esp.",
    "etc.", "ex.",  "f.",    "fig.", "gen.",  "id.",   "i.e.", "int.",  "l.",    "m.",   "Med.", "Mil.", "Mr.",
    "n.",   "n.q.", "orig.", "pl.",  "pred.", "pres.", "p.m.", "ref.",  "v.",    "vs.",  "w/",
};

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_mark(char c) { return kMarks.find(c) != std::string_view::npos; }

// "T.", "U.S.": letters and periods in turn.
bool initials(std::string_view t) {
  if (t.size() < 2 || t.size() % 2 != 0) return false;
  for (std::size_t i = 0; i < t.size(); i += 2) {
    if (!letter(t[i]) || t[i + 1] != '.') return false;
  }
  return true;
}

// "Mr.", "Hz.": a capital and consonants ('|' counts as one there).
bool title(std::string_view t) {
  if (t.size() < 3 || t[0] < 'A' || t[0] > 'Z') return false;
  const std::string_view middle = t.substr(1, t.size() - 2);
  return middle.find_first_not_of("bcdfghjklmnpqrstvwxz|") == std::string_view::npos;
}

bool abbreviation(std::string_view t) {
  return std::find(std::begin(kAbbreviations), std::end(kAbbreviations), t) != std::end(kAbbreviations) ||
         initials(t) || title(t);
}

// Bytes of the white space that `text` begins with, or 0. What Unicode and Python agree to call so.
std::size_t space_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const unsigned first = at(0);
  if (first == ' ' || (first >= 0x09 && first <= 0x0D) || (first >= 0x1C && first <= 0x1F)) return 1;
  if (first == 0xC2) return at(1) == 0x85 || at(1) == 0xA0 ? 2 : 0;  // NEL, no-break
  if (first == 0xE1) return at(1) == 0x9A && at(2) == 0x80 ? 3 : 0;  // Ogham
  if (first == 0xE3) return at(1) == 0x80 && at(2) == 0x80 ? 3 : 0;  // ideographic
  if (first != 0xE2) return 0;
  if (at(1) == 0x80 && ((at(2) >= 0x80 && at(2) <= 0x8A) || at(2) == 0xA8 || at(2) == 0xA9 || at(2) == 0xAF)) return 3;
  return at(1) == 0x81 && at(2) == 0x9F ? 3 : 0;
}

std::size_t newline_bytes(std::string_view text) {
  if (text.substr(0, 1) == "\n") return 1;
  return text.substr(0, 2) == "\r\n" ? 2 : 0;
}

// Quotes stand alone, contractions are cut before their n, white space is one blank, and an empty line is a token.
std::string normalized(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 4 + 16);
  while (!text.empty()) {
    std::size_t used = 1;
    if (std::size_t newline = newline_bytes(text); newline > 0) {
      std::size_t lines = 0;
      for (used = 0; newline > 0; newline = newline_bytes(text.substr(used))) {
        used += newline;
        ++lines;
      }
      out += ' ';
      if (lines > 1) out.append(kEndOfParagraph) += ' ';
    } else if (const std::size_t space = space_bytes(text); space > 0) {
      used = space;
      out += ' ';
    } else if (text.substr(0, 3) == "n't") {
      used = 3;
      out += " n ' t";
    } else if (text[0] == '\'' || text[0] == '"') {
      (((out += ' ') += text[0]) += ' ');
    } else if (const std::string_view quote = text.substr(0, 3);
               quote == "\u2018" || quote == "\u2019" || quote == "\u201C" || quote == "\u201D") {
      used = 3;
      (out += ' ').append(quote) += ' ';
    } else {
      out += text[0];
    }
    text.remove_prefix(used);
  }
  return out;
}

// Marks around a word become tokens, and so does its last period, unless it belongs to an abbreviation.
void split_marks(std::string_view t, std::vector<std::string_view>& tokens, std::vector<std::string_view>& tail) {
  while (!t.empty() && is_mark(t.front())) {
    tokens.push_back(t.substr(0, 1));
    t.remove_prefix(1);
  }
  tail.clear();
  while (!t.empty() && (is_mark(t.back()) || t.back() == '.')) {
    if (is_mark(t.back())) {
      tail.push_back(t.substr(t.size() - 1));
      t.remove_suffix(1);
    }
    if (t.size() >= 3 && t.substr(t.size() - 3) == "...") {
      tail.push_back(t.substr(t.size() - 3));
      while (!t.empty() && t.back() == '.') t.remove_suffix(1);
    }
    if (!t.empty() && t.back() == '.') {
      if (abbreviation(t)) break;
      tail.push_back(t.substr(t.size() - 1));
      t.remove_suffix(1);
    }
  }
  if (!t.empty()) tokens.push_back(t);
  tokens.insert(tokens.end(), tail.rbegin(), tail.rend());
}

bool ends_sentence(std::string_view t) {
  return t == "." || t == "!" || t == "?" || t == "..." || t == kEndOfParagraph;
}
// What may follow the end of a sentence and still belongs to it.
bool closes_sentence(std::string_view t) { return ends_sentence(t) || t == ")" || t == "\u201D" || t == "\u2019"; }

// Bytes of `text` that spell `emoticon`, a blank allowed before each character but the first; 0 when they do not, or
// when a word goes on behind it.
std::size_t spelled(std::string_view text, std::string_view emoticon) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < emoticon.size(); ++i) {
    const bool inside_character = (static_cast<unsigned char>(emoticon[i]) & 0xC0) == 0x80;
    if (i > 0 && !inside_character && at < text.size() && text[at] == ' ') ++at;
    if (at >= text.size() || text[at] != emoticon[i]) return 0;
    ++at;
  }
  return at == text.size() || text[at] == ' ' ? at : 0;
}

// "( ! )" with or without the blanks; their bytes, or 0.
std::size_t irony(std::string_view text) {
  std::size_t at = 0;
  for (const char c : {'(', '!', ')'}) {
    if (c != '(' && at < text.size() && text[at] == ' ') ++at;
    if (at >= text.size() || text[at] != c) return 0;
    ++at;
  }
  return at;
}

// Puts emoticons and the mark of irony together again in a sentence of tokens with blanks between them.
std::string joined(std::string_view sentence) {
  std::string with_irony;
  with_irony.reserve(sentence.size());
  for (std::size_t i = 0; i < sentence.size();) {
    const std::size_t used = sentence[i] == '(' ? irony(sentence.substr(i)) : 0;
    if (used > 0) {
      with_irony += "(!)";
    } else {
      with_irony += sentence[i];
    }
    i += std::max<std::size_t>(used, 1);
  }
  std::string out;
  out.reserve(with_irony.size());
  const std::string_view rest = with_irony;
  for (std::size_t i = 0; i < rest.size();) {
    std::size_t used = 0;
    if (begins_emoticon(rest[i])) {
      find_emoticon([&](std::string_view emoticon, double) {
        if (emoticon[0] == rest[i]) used = spelled(rest.substr(i), emoticon);
        if (used > 0) out += emoticon;
        return used > 0;
      });
    }
    if (used == 0) out += rest[i];
    i += std::max<std::size_t>(used, 1);
  }
  return out;
}

}  // namespace

bool begins_emoticon(char byte) { return kEmoticonBegins[static_cast<unsigned char>(byte)]; }

bool find_emoticon(const std::function<bool(std::string_view, double)>& take) {
  return std::any_of(std::begin(kEmoticons), std::end(kEmoticons),
                     [&](const Emoticon& emoticon) { return take(emoticon.text, emoticon.polarity); });
}

void for_each_token(std::string_view text, const std::function<void(std::string_view)>& token) {
  const auto for_each_word = [](std::string_view line, const auto& take) {
    for (std::size_t i = 0; i < line.size();) {
      const std::size_t end = std::min(line.find(' ', i), line.size());
      if (end > i) take(line.substr(i, end - i));
      i = end + 1;
    }
  };
  const std::string normal = normalized(text);
  std::vector<std::string_view> tokens;
  std::vector<std::string_view> tail;
  for_each_word(normal, [&](std::string_view word) { split_marks(word, tokens, tail); });

  // Emoticons are looked for in one sentence at a time, so where a sentence ends matters.
  std::string sentence;
  const auto finish = [&] {
    for_each_word(joined(sentence), token);
    sentence.clear();
  };
  const auto add = [&](std::string_view t) {
    if (t == kEndOfParagraph) return;
    if (!sentence.empty()) sentence += ' ';
    sentence += t;
  };
  for (std::size_t i = 0; i < tokens.size();) {
    if (!ends_sentence(tokens[i])) {
      add(tokens[i++]);
      continue;
    }
    while (i < tokens.size() && closes_sentence(tokens[i])) add(tokens[i++]);
    finish();
  }
  finish();
}

}  // namespace orla::functions
