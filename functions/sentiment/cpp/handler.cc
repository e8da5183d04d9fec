// The text in the body, its polarity and subjectivity as JSON.
#include <charconv>
#include <string>

#include "orla.h"
#include "sentiment.h"

namespace {

constexpr std::size_t kMostBytes = 16 << 20;

// The shortest text that reads back as the same number, as Python prints it.
void append(std::string& out, double number) {
  char text[32];
  out.append(text, std::to_chars(text, text + sizeof text, number).ptr);
  if (out.find_first_of(".e", out.rfind(' ')) == std::string::npos) out += ".0";
}

}  // namespace

ORLA_HANDLER {
  std::size_t bytes = 0;
  char* body = orla_body(kMostBytes, &bytes);
  if (body == nullptr) {
    orla_status(413);
    return orla_write_text("the text is longer than 16 MiB\n") < 0;
  }
  const std::optional<orla::functions::Sentiment> sentiment = orla::functions::sentiment_of({body, bytes});
  free(body);
  if (!sentiment) {
    orla_status(400);
    return orla_write_text("the text is not UTF-8\n") < 0;
  }
  std::string out = "{\"polarity\": ";
  append(out, sentiment->polarity);
  out += ", \"subjectivity\": ";
  append(out, sentiment->subjectivity);
  out += "}\n";
  orla_set_header_text("Content-Type", "application/json");
  return orla_write(out.data(), static_cast<std::uint32_t>(out.size())) < 0;
}
