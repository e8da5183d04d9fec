#include "node/matrix_codec.h"

#include <fmt/format.h>

#include "base/absl_view.h"
#include "codec/encodings.h"

namespace orla::node {

namespace {

using function::NumberMatrix;

constexpr std::string_view kNpyMagic = "\x93NUMPY";

const codec::MatrixEncoding& encoding_of(function::MatrixCodec::Format format) {
  const std::string_view name = format == function::MatrixCodec::Format::kJson ? "json" : "npy";
  for (const codec::MatrixEncoding& encoding : codec::matrix_encodings()) {
    if (name == encoding.name) return encoding;
  }
  return codec::matrix_encodings().front();
}

// The texts of the objects of "[{...}, {...}]"; a matrix's object holds no other one, and no text with a brace.
absl::StatusOr<std::vector<std::string_view>> split_json(std::string_view text, std::size_t count) {
  if (count == 1) return std::vector{text};
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t begin = text.find('{');
    const std::size_t end = text.find('}');
    const std::string_view between = text.substr(0, std::min(begin, text.size()));
    const std::string_view allowed = parts.empty() ? "[ \t\r\n" : begin == text.npos ? "] \t\r\n" : ", \t\r\n";
    if (between.find_first_not_of(allowed) != between.npos || (begin != text.npos && end < begin)) break;
    if (begin == text.npos) {
      if (parts.size() == count) return parts;
      break;
    }
    if (end == text.npos) break;
    parts.push_back(text.substr(begin, end - begin + 1));
    text.remove_prefix(end + 1);
  }
  return absl::InvalidArgumentError(
      fmt::format("a JSON array of {} matrices, was expected; {} were found", count, parts.size()));
}

NumberMatrix numbers_of(codec::Matrix&& matrix) {
  NumberMatrix numbers{matrix.rows, matrix.columns, {}};
  if (auto* doubles = std::get_if<std::vector<double>>(&matrix.elements); doubles != nullptr) {
    numbers.elements = std::move(*doubles);
  } else {
    std::visit([&](const auto& elements) { numbers.elements.assign(elements.begin(), elements.end()); },
               matrix.elements);
  }
  return numbers;
}

}  // namespace

absl::StatusOr<std::vector<NumberMatrix>> EncodingsMatrixCodec::decode(Format format, std::string_view bytes,
                                                                       std::size_t count) const {
  const codec::MatrixEncoding& encoding = encoding_of(format);
  std::vector<NumberMatrix> matrices;
  codec::Matrix matrix;
  if (format == Format::kJson) {
    const absl::StatusOr<std::vector<std::string_view>> parts = split_json(bytes, count);
    if (!parts.ok()) return parts.status();
    for (const std::string_view part : *parts) {
      if (absl::Status status = encoding.decode(part, matrix); !status.ok()) return status;
      matrices.push_back(numbers_of(std::move(matrix)));
    }
    return matrices;
  }
  while (matrices.size() + 1 < count) {
    // A file ends where the next one begins; numbers may look like that beginning, so it has to be a whole one too.
    std::size_t next = bytes.find(kNpyMagic, 1);
    while (next != bytes.npos && !encoding.decode(bytes.substr(0, next), matrix).ok()) {
      next = bytes.find(kNpyMagic, next + 1);
    }
    if (next == bytes.npos) {
      return absl::InvalidArgumentError(
          fmt::format("{} npy files, one after the other, were expected; {} were found", count, matrices.size()));
    }
    matrices.push_back(numbers_of(std::move(matrix)));
    bytes.remove_prefix(next);
  }
  if (absl::Status status = encoding.decode(bytes, matrix); !status.ok()) return status;
  matrices.push_back(numbers_of(std::move(matrix)));
  return matrices;
}

absl::StatusOr<std::string> EncodingsMatrixCodec::encode(Format format, const NumberMatrix& matrix) const {
  std::string bytes;
  const absl::Status status =
      encoding_of(format).encode(codec::Matrix{matrix.rows, matrix.columns, matrix.elements}, bytes);
  if (!status.ok()) return status;
  return bytes;
}

}  // namespace orla::node
