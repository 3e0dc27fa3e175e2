// Makes the bytes of input files for tests of import: .npy, .npz, .gz, text.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "storage/import/formats/table_reader.h"
#include "storage/io/file.h"

namespace ooc::test {

void put_file(FileSystem& files, const std::string& path, std::string_view bytes);

// A .npy with this header and payload, whether they fit together or not.
std::string npy_file(std::string_view descr, const std::vector<std::int64_t>& shape,
                     std::string_view payload, bool fortran_order = false, int version = 1);

template <class T>
std::string npy(const std::vector<std::int64_t>& shape, const std::vector<T>& values,
                bool fortran_order = false) {
  const char kind = std::is_floating_point_v<T> ? 'f' : std::is_signed_v<T> ? 'i' : 'u';
  std::string payload(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(payload.data(), values.data(), payload.size());
  return npy_file(std::string("<") + kind + std::to_string(sizeof(T)), shape, payload,
                  fortran_order);
}

std::string gzip(std::string_view text);

// Members as (name, bytes); ".npy" belongs into the name.
std::string zip(const std::vector<std::pair<std::string, std::string>>& members, bool compressed);

// Every row, through a buffer of `rows_at_once` rows.
template <class T>
std::vector<T> read_all(TableReader& table, std::int64_t rows_at_once = 3) {
  std::vector<T> all;
  std::vector<T> block(static_cast<std::size_t>(rows_at_once * table.cols()));
  while (const std::int64_t count = table.read(std::span<T>(block))) {
    all.insert(all.end(), block.begin(), block.begin() + count * table.cols());
  }
  return all;
}

// The message of the E that `call` throws; fails the test where it throws none.
template <class E, class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another type of error: ") + error.what();
  }
  return "no error";
}

}  // namespace ooc::test
