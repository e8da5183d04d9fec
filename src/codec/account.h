// Parts that several formats share: ledgers and publications. Their formats are at the head of account.cc.
#pragma once

#include <vector>

#include "base/bytes.h"
#include "model/chunk.h"
#include "model/ledger.h"

namespace orla::codec {

void put_ledger(base::ByteWriter& to, const model::Ledger& ledger);
// What is wrong, or nothing.
const char* get_ledger(base::ByteReader& from, model::Ledger& ledger);

void put_publications(base::ByteWriter& to, const std::vector<model::Publication>& publications);
const char* get_publications(base::ByteReader& from, std::vector<model::Publication>& publications);

// A number of things that take at least `least_bytes` each, as far as the bytes left can hold them; else fails.
std::size_t get_count(base::ByteReader& from, std::size_t least_bytes);

void put_time(base::ByteWriter& to, model::Time t);
model::Time get_time(base::ByteReader& from);

}  // namespace orla::codec
