// A matrix of numbers, as functions take and give them, and its encodings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"

namespace orla::codec {

// Row after row. rows * columns == the number of elements.
struct Matrix {
  using Elements = std::variant<std::vector<double>, std::vector<float>, std::vector<std::int64_t>>;
  std::size_t rows = 0;
  std::size_t columns = 0;
  Elements elements;

  std::size_t size() const {
    return std::visit([](const auto& v) { return v.size(); }, elements);
  }
};

inline constexpr std::size_t kMaxMatrixElements = std::size_t{1} << 27;

// Each replaces `out`; decoders take memory in proportion to the bytes, and leave a matrix of no elements after an
// error. InvalidArgument: rows and columns do not fit the elements; not such bytes.

// The file format of NumPy: numpy.load(), numpy.save(). See npy.cc.
absl::Status encode_npy(const Matrix& matrix, std::string& out);
absl::Status decode_npy(std::string_view bytes, Matrix& out);

// {"rows":2,"columns":3,"type":"f8","elements":[...]}, read in any order; type "f8", "f4" or "i8"; numbers as in
// json_numbers.h.
absl::Status encode_matrix_json(const Matrix& matrix, std::string& out);
absl::Status decode_matrix_json(std::string_view bytes, Matrix& out);

// What every encoder checks first.
absl::Status check_matrix(const Matrix& matrix);

}  // namespace orla::codec
