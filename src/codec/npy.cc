// NumPy's file format, version 1.0 (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html):
//
//   magic      6 bytes  \x93NUMPY
//   version    2 bytes  1, 0
//   length     2 bytes  of the header, little-endian
//   header     a Python dictionary, {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }, then blanks and one
//   line end, so
//              that what follows begins at a multiple of 64 bytes
//   elements   little-endian, row after row
//
// Written: two dimensions, '<f8', '<f4' or '<i8'. Read: these three types, C order, one dimension (a single row) or
// two, the dictionary's entries in any order. There is no checksum: damage that leaves such a file passes.
#include <bit>
#include <cstring>

#include "codec/matrix.h"
#include "fmt/format.h"

namespace orla::codec {

static_assert(std::endian::native == std::endian::little);

namespace {

constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
constexpr std::size_t kBeforeHeader = kMagic.size() + 2;
constexpr std::size_t kAlignment = 64;

struct Header {
  std::string_view type;
  bool fortran_order = false;
  std::size_t dimensions = 0;
  std::size_t shape[2] = {1, 1};
};

// Reads the dictionary of the header.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : rest_(text) {}

  // What is wrong, or null.
  const char* read(Header& header) {
    if (!take("{")) return "the header is no dictionary";
    unsigned seen = 0;
    while (!take("}")) {
      std::string_view key;
      if (!text(key) || !take(":")) return "the header has no 'key': value";
      unsigned bit = 0;
      if (key == "descr") {
        bit = 1;
        if (!text(header.type)) return "'descr' is no text";
      } else if (key == "fortran_order") {
        bit = 2;
        header.fortran_order = take("True");
        if (!header.fortran_order && !take("False")) return "'fortran_order' is neither True nor False";
      } else if (key == "shape") {
        bit = 4;
        if (!shape(header)) return "'shape' is no tuple of one or two sizes";
      } else {
        return "the header has another key than 'descr', 'fortran_order' and 'shape'";
      }
      if ((seen & bit) != 0) return "the header has a key twice";
      seen |= bit;
      if (!take(",") && !peek('}')) return "the header has no comma between entries";
    }
    blanks();
    if (seen != 7) return "the header lacks 'descr', 'fortran_order' or 'shape'";
    return rest_.empty() ? nullptr : "there is more behind the header's dictionary";
  }

 private:
  void blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n')) rest_.remove_prefix(1);
  }
  bool peek(char c) {
    blanks();
    return !rest_.empty() && rest_.front() == c;
  }
  bool take(std::string_view word) {
    blanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool text(std::string_view& value) {
    blanks();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return false;
    const std::size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) return false;
    value = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return true;
  }
  bool shape(Header& header) {
    if (!take("(")) return false;
    while (!take(")")) {
      blanks();
      std::size_t size = 0;
      std::size_t digits = 0;
      for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9' && digits < 10; ++digits)
        size = 10 * size + static_cast<std::size_t>(rest_[digits] - '0');
      if (digits == 0 || size > kMaxMatrixElements || header.dimensions == 2) return false;
      rest_.remove_prefix(digits);
      header.shape[header.dimensions++] = size;
      if (!take(",") && !peek(')')) return false;
    }
    if (header.dimensions == 1) {
      header.shape[1] = header.shape[0];
      header.shape[0] = 1;
    }
    return header.dimensions > 0;
  }

  std::string_view rest_;
};

template <typename T>
const char* take_elements(std::string_view bytes, Matrix& out) {
  if (bytes.size() != out.rows * out.columns * sizeof(T)) return "there are not as many elements as the shape says";
  std::vector<T>& elements = out.elements.emplace<std::vector<T>>(out.rows * out.columns);
  if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
  return nullptr;
}

const char* read(std::string_view bytes, Matrix& out) {
  if (!bytes.starts_with(kMagic)) return "it does not begin as a file of version 1.0 does";
  if (bytes.size() < kBeforeHeader) return "the header is cut off";
  const std::size_t size =
      static_cast<std::uint8_t>(bytes[8]) | static_cast<std::size_t>(static_cast<std::uint8_t>(bytes[9])) << 8;
  if (bytes.size() - kBeforeHeader < size) return "the header is cut off";
  Header header;
  const char* wrong = HeaderReader(bytes.substr(kBeforeHeader, size)).read(header);
  if (wrong != nullptr) return wrong;
  if (header.fortran_order) return "the elements stand column after column; save it with order='C'";
  out.rows = header.shape[0];
  out.columns = header.shape[1];
  const std::string_view elements = bytes.substr(kBeforeHeader + size);
  if (header.type == "<f8") return take_elements<double>(elements, out);
  if (header.type == "<f4") return take_elements<float>(elements, out);
  if (header.type == "<i8") return take_elements<std::int64_t>(elements, out);
  return "the elements are neither '<f8' nor '<f4' nor '<i8'";
}

}  // namespace

absl::Status encode_npy(const Matrix& matrix, std::string& out) {
  absl::Status status = check_matrix(matrix);
  if (!status.ok()) return status;
  constexpr const char* kTypes[] = {"<f8", "<f4", "<i8"};
  const std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                                         kTypes[matrix.elements.index()], matrix.rows, matrix.columns);
  const std::size_t begin = (kBeforeHeader + header.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  const std::size_t size = begin - kBeforeHeader;
  out.assign(kMagic);
  out += static_cast<char>(size & 0xff);
  out += static_cast<char>(size >> 8);
  out += header;
  out.append(begin - 1 - out.size(), ' ');
  out += '\n';
  std::visit(
      [&](const auto& elements) {
        out.append(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof *elements.data());
      },
      matrix.elements);
  return absl::OkStatus();
}

absl::Status decode_npy(std::string_view bytes, Matrix& out) {
  const char* wrong = read(bytes, out);
  if (wrong == nullptr) return absl::OkStatus();
  out = Matrix();
  return absl::InvalidArgumentError(fmt::format("npy: {}", wrong));
}

}  // namespace orla::codec
