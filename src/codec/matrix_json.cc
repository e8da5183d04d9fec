// The format is in matrix.h.
#include <optional>

#include "codec/json_numbers.h"
#include "codec/matrix.h"
#include "fmt/format.h"

namespace orla::codec {

namespace {

enum Member : unsigned { kRows = 1, kColumns = 2, kType = 4, kElements = 8 };

void read_type(JsonReader& json, Matrix::Elements& elements) {
  if (json.take("\"f4\"")) {
    elements.emplace<std::vector<float>>();
  } else if (json.take("\"i8\"")) {
    elements.emplace<std::vector<std::int64_t>>();
  } else {
    json.expect("\"f8\"");
    elements.emplace<std::vector<double>>();
  }
}

void read_elements(JsonReader& json, Matrix::Elements& elements) {
  std::visit([&](auto& numbers) { json.array(numbers); }, elements);
}

void read(JsonReader& json, Matrix& out) {
  unsigned seen = 0;
  const auto begin = [&](Member member) {
    if ((seen & member) != 0) json.fail("found a member twice");
    seen |= member;
    json.expect(':');
  };
  std::optional<JsonReader> elements;  // where they begin, when their type comes behind them
  json.expect('{');
  for (int i = 0; i < 4 && !json.failed(); ++i) {
    if (i > 0) json.expect(',');
    if (json.take("\"rows\"")) {
      begin(kRows);
      out.rows = static_cast<std::size_t>(json.integer(0, kMaxMatrixElements));
    } else if (json.take("\"columns\"")) {
      begin(kColumns);
      out.columns = static_cast<std::size_t>(json.integer(0, kMaxMatrixElements));
    } else if (json.take("\"type\"")) {
      begin(kType);
      read_type(json, out.elements);
    } else {
      json.expect("\"elements\"");
      begin(kElements);
      if ((seen & kType) != 0) {
        read_elements(json, out.elements);
      } else {
        elements = json;
        json.skip_array();
      }
    }
  }
  json.expect('}');
  json.finish();
  if (elements && !json.failed()) {
    read_elements(*elements, out.elements);
    if (elements->failed()) json = *elements;
  }
  if (out.size() != out.rows * out.columns) json.fail("rows * columns is another number than that of elements");
}

}  // namespace

absl::Status check_matrix(const Matrix& matrix) {
  if (matrix.rows > kMaxMatrixElements || matrix.columns > kMaxMatrixElements ||
      matrix.rows * matrix.columns != matrix.size() || matrix.size() > kMaxMatrixElements)
    return absl::InvalidArgumentError(
        fmt::format("matrix to encode: {} rows of {} for {} elements, at most {} are taken", matrix.rows,
                    matrix.columns, matrix.size(), kMaxMatrixElements));
  return absl::OkStatus();
}

absl::Status encode_matrix_json(const Matrix& matrix, std::string& out) {
  absl::Status status = check_matrix(matrix);
  if (!status.ok()) return status;
  constexpr const char* kTypes[] = {"f8", "f4", "i8"};
  out = fmt::format("{{\"rows\":{},\"columns\":{},\"type\":\"{}\",\"elements\":", matrix.rows, matrix.columns,
                    kTypes[matrix.elements.index()]);
  std::visit([&](const auto& elements) { write_json(elements, out); }, matrix.elements);
  out += '}';
  return absl::OkStatus();
}

absl::Status decode_matrix_json(std::string_view bytes, Matrix& out) {
  JsonReader json(bytes);
  read(json, out);
  if (!json.failed()) return absl::OkStatus();
  out = Matrix();
  return absl::InvalidArgumentError("matrix as JSON: " + json.problem());
}

}  // namespace orla::codec
