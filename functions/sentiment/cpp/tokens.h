// A text as TextBlob's tokenizer sees it: words and marks, each a token of its own.
#pragma once

#include <functional>
#include <string_view>

namespace orla::functions {

// Hands over the tokens of `text` (UTF-8) in order. A token lives until `token` returns. Emoticons and the mark of
// irony "(!)" come as one token, even where spaces stand between their characters.
void for_each_token(std::string_view text, const std::function<void(std::string_view)>& token);

// Whether an emoticon, or one in lower case, begins with that byte: most do not, and need no look at all of them.
bool begins_emoticon(char byte);

// Each emoticon in turn, until `take` says true; in the order in which they are tried.
bool find_emoticon(const std::function<bool(std::string_view text, double polarity)>& take);

}  // namespace orla::functions
