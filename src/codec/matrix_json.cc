// The format is in matrix.h.
#include "codec/json_numbers.h"
#include "codec/matrix.h"
#include "fmt/format.h"

namespace orla::codec {

namespace {

void read(JsonReader& json, Matrix& out) {
  json.expect('{');
  json.expect("\"rows\"");
  json.expect(':');
  out.rows = static_cast<std::size_t>(json.integer(0, kMaxMatrixElements));
  json.expect(',');
  json.expect("\"columns\"");
  json.expect(':');
  out.columns = static_cast<std::size_t>(json.integer(0, kMaxMatrixElements));
  json.expect(',');
  json.expect("\"type\"");
  json.expect(':');
  if (json.take("\"f4\"")) {
    out.elements.emplace<std::vector<float>>();
  } else if (json.take("\"i8\"")) {
    out.elements.emplace<std::vector<std::int64_t>>();
  } else {
    json.expect("\"f8\"");
    out.elements.emplace<std::vector<double>>();
  }
  json.expect(',');
  json.expect("\"elements\"");
  json.expect(':');
  std::visit([&](auto& elements) { json.array(elements); }, out.elements);
  json.expect('}');
  json.finish();
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
