#include "model/series.h"

#include "base/bytes.h"

namespace orla::model {

std::string to_string(const Series& series) {
  std::string out = series.metric;
  if (series.labels.empty()) return out;
  char before = '{';
  for (const Label& label : series.labels) {
    out += before;
    out += label.first;
    out += '=';
    out += label.second;
    before = ',';
  }
  out += '}';
  return out;
}

namespace {
// Every text with its length before it, so that no two values share a byte string.
void put_labels(base::ByteWriter& to, const std::vector<Label>& labels) {
  to.varint(labels.size());
  for (const Label& label : labels) {
    to.text(label.first);
    to.text(label.second);
  }
}
}  // namespace

std::string identity(const Series& series) {
  std::string out;
  base::ByteWriter to(out);
  to.text(series.metric);
  put_labels(to, series.labels);
  return out;
}

std::string identity(const GroupDef& group) {
  std::string out;
  base::ByteWriter to(out);
  to.text(group.stream);
  to.u64(group.definition);
  to.varint(base::zigzag(group.slice_ns));
  to.varint(base::zigzag(group.decimals));
  put_labels(to, group.labels);
  return out;
}

}  // namespace orla::model
